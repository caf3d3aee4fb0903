//! Checks of the sources that no compiler makes: cycles between files, the length of files, words in comments,
//! and numbers that tests must have.

mod bounds;
mod client_lines;
mod cycles;
mod dependencies;
mod failed_tests;
mod imports;
mod methods;
mod modules;
mod nouns;
mod parameters;
mod paths;
mod public_items;
mod traps;
mod uses;
mod wings;
mod words;
