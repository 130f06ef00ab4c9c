"""Reports: tables and figures of every protocol, and a page that holds them."""
