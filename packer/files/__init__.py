"""Output files, private folders, progress and text; errors are ExportErrors that name the file."""
