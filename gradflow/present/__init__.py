"""Records in; tables, CSV rows, figures and a page out. Nothing here measures or imports torch."""
