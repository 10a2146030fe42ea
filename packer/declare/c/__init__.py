"""C as text: its declarations, its types and their codes."""
