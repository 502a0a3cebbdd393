"""The verbs: bring a source up to date, bring all that is due up to date."""
