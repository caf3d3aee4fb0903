//! The vocabulary: which key may stand where.
