//! What no compiler checks: which module uses which, how long files are, what comments say.

mod cycles;
mod modules;
mod uses;
