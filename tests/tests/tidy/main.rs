//! Checks of the sources that no compiler makes: cycles between files, the length of files, words in comments.

mod cycles;
mod imports;
mod modules;
mod uses;
mod wings;
mod words;
