//! The vocabulary that macros and generator share. syn in, plain data out.
