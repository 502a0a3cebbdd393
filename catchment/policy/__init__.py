"""Pure decisions: functions of records and the time, without I/O."""
