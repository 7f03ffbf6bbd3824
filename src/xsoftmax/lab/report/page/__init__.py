"""The report's page: what it says and shows of each data set, its template, its style and its program."""
