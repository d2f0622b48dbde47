"""Store: DuckDB, one writer; queries; accounts of every span."""
