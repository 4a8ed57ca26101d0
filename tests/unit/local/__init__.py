"""Tests of dtjob.local without processes."""
