//! The parts of a query, and how they are written.

use std::fmt::{self, Display, Write as _};

use apiloom_vocabulary::Comparison;
use serde_json::Value;

/// One part of a query. It makes new values of those that the part before it found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// `.name`.
    Field(String),
    /// `[0]`.
    Item(i64),
    /// `[1:3]` and `[*]`.
    Slice(Slice),
    /// `.*`.
    Every,
    /// `..`: the values and all below them that have parts.
    Descend,
    /// `[?(..)]`.
    Where(Filter),
    /// `[0,'a']`: what each of the parts finds.
    Union(Vec<Vec<Node>>),
    /// A text, a fraction or a boolean.
    Literal(Value),
    Integer(i64),
    /// Any other word, which means nothing in a column.
    Word(String),
}

/// Bounds of a slice; one that is left out is that of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    pub(crate) step: Option<i64>,
}

/// A filter of items: that the left side has values, or how its value compares with that of the right one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Filter {
    pub(crate) left: Vec<Node>,
    pub(crate) test: Option<(Operator, Vec<Node>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Known(Comparison),
    /// `=` and the like: no item can be compared.
    Unknown(String),
}

/// Writes the parts of a query. A literal that follows another part stands apart from it.
pub(super) fn write(nodes: &[Node], follows: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut is_descending = false;
    let mut follows = follows;
    for node in nodes {
        let starts_with_letter = |name: &str| name.starts_with(|c: char| c.is_ascii_alphanumeric());
        match node {
            Node::Field(name) if is_descending && starts_with_letter(name) => {
                write_name(name, f)?;
            }
            Node::Literal(_) | Node::Integer(_) if follows => write!(f, " {node}")?,
            node => node.fmt(f)?,
        }
        follows = true;
        is_descending = *node == Node::Descend;
    }
    Ok(())
}

/// Writes a name with a backslash before each character that would end it.
fn write_name(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    name.chars().try_for_each(|c| {
        if ". ,\t\r\n[]$@{}*=!<>".contains(c) {
            f.write_char('\\')?;
        }
        f.write_char(c)
    })
}

impl Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write_field(name, f),
            Self::Item(number) => write!(f, "[{number}]"),
            Self::Slice(slice) => write!(f, "[{slice}]"),
            Self::Every => f.write_str(".*"),
            Self::Descend => f.write_str(".."),
            Self::Where(filter) => write!(f, "[?({filter})]"),
            Self::Union(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    f.write_char(if index == 0 { '[' } else { ',' })?;
                    write_part(part, f)?;
                }
                f.write_char(']')
            }
            // JSONPath has an escape for each kind of quotes only within that kind, so the other kind is used.
            Self::Literal(Value::String(text)) if text.contains('"') => write!(f, "'{text}'"),
            Self::Literal(Value::String(text)) => write!(f, "\"{text}\""),
            Self::Literal(value) => write!(f, "{value}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Word(word) => write!(f, " {word}"),
        }
    }
}

fn write_field(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(is_plain) {
        return write!(f, ".{name}");
    }
    // Between brackets neither of these can stand, even with a backslash.
    if name.contains(['\'', ',', ']', '\n']) {
        f.write_char('.')?;
        return write_name(name, f);
    }
    f.write_str("['")?;
    write_name(name, f)?;
    f.write_str("']")
}

/// Writes a part of a union.
fn write_part(nodes: &[Node], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match nodes {
        [Node::Item(number)] => write!(f, "{number}"),
        [Node::Slice(slice)] => slice.fmt(f),
        nodes => {
            f.write_char('\'')?;
            for (index, node) in nodes.iter().enumerate() {
                match node {
                    Node::Field(name) => {
                        f.write_str(if index == 0 { "" } else { "." })?;
                        write_name(name, f)?;
                    }
                    Node::Every if index == 0 => f.write_char('*')?,
                    node => write(std::slice::from_ref(node), index > 0, f)?,
                }
            }
            f.write_char('\'')
        }
    }
}

impl Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return f.write_char('*');
        }
        let bound = |bound: Option<i64>| bound.map(|bound| bound.to_string()).unwrap_or_default();
        write!(f, "{}:{}", bound(self.from), bound(self.to))?;
        self.step.map_or(Ok(()), |step| write!(f, ":{step}"))
    }
}

impl Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('@')?;
        write(&self.left, true, f)?;
        let Some((operator, right)) = &self.test else {
            return Ok(());
        };
        f.write_str(match operator {
            Operator::Known(comparison) => comparison.word(),
            Operator::Unknown(text) => text,
        })?;
        write(right, false, f)
    }
}
