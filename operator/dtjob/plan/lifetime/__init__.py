"""The life of a job as a whole: its phase, deadlines, suspension, success, and what stays after its end."""
