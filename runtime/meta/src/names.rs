//! The name grammars of the API: DNS labels and subdomains, qualified names, label values, path segments.
