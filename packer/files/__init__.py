"""Output files, private folders, progress and text that is shown."""
