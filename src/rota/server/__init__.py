"""The HTTP server: a frame of doors, problems and pages of lists, and one router a noun."""
