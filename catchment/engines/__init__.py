"""The engines that run the table of jobs: embedded, in the serving process; distributed ones come beside it."""
