"""The endurance test: the whole product as real processes against the playground, under faults and kills."""
