"""Web: pages and the API, server-rendered, safe against hostile content."""
