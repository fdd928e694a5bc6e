"""HTTP: requests, rates, headers, pages, errors, the API description and static files. No table."""
