//! The doors: each parses into the model, collects every error, quotes a thin call.
