"""dtjob_trainer: turns an ordinary Keras script into a distributed one."""
