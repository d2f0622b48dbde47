"""What every bus owes its stages."""
