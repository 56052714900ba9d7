"""The statements, in named blocks."""
