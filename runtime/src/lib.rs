//! The facade that users and generated code name.
