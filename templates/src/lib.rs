//! One template per artifact and the table of them. No logic.
