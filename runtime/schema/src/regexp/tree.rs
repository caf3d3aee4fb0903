//! The syntax tree of a pattern. Every part knows its size, so that a pattern over a limit is refused while it is parsed.

use regex_syntax::hir::Look;

use super::class::Class;
use super::cost::{MAX_COST, PROGRAM, STEP, character_cost};

/// A part of a pattern.
#[derive(Debug)]
pub(super) enum Node {
    Empty,
    Literal { text: String, folds: bool },
    Class(Class),
    Look(Look),
    Repeat(Box<Repeat>),
    Concat(Vec<Node>),
    Alternate(Vec<Node>),
}

/// How often a part is repeated.
#[derive(Debug)]
pub(super) struct Repeat {
    pub(super) node: Node,
    pub(super) bounds: Bounds,
    pub(super) is_greedy: bool,
}

/// The least and the largest number of repetitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) least: u32,
    pub(super) most: Option<u32>,
}

impl Bounds {
    /// The copies of a part in the program.
    fn copies(self) -> usize {
        self.most.unwrap_or(self.least).max(1) as usize
    }

    /// The factor with which it counts in the limit of nested repetitions.
    fn factor(self) -> u32 {
        self.most.unwrap_or(self.least).max(1)
    }
}

/// What a part counts as, where Go flattens its tree.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Concat,
    Alternate,
    /// One character of several.
    Character,
    Other,
}

/// A part with its size.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) node: Node,
    shape: Shape,
    /// The levels of Go's tree.
    pub(super) height: u32,
    /// The largest product of nested counted repetitions.
    pub(super) repeats: u32,
    /// Bytes of memory.
    cost: usize,
    /// Whether it is a group, which is repeated as a whole.
    is_group: bool,
}

impl Part {
    pub(super) fn empty() -> Self {
        Self::leaf(Node::Empty, Shape::Other, STEP)
    }

    pub(super) fn look(look: Look) -> Self {
        Self::leaf(Node::Look(look), Shape::Other, STEP)
    }

    pub(super) fn class(class: Class) -> Self {
        let cost = STEP.saturating_add(class.cost());
        Self::leaf(Node::Class(class), Shape::Character, cost)
    }

    pub(super) fn character(c: char, folds: bool) -> Self {
        let text = c.to_string();
        let node = Node::Literal { text, folds };
        Self::leaf(node, Shape::Character, character_cost(c, folds))
    }

    fn leaf(node: Node, shape: Shape, cost: usize) -> Self {
        Self {
            node,
            shape,
            height: 1,
            repeats: 1,
            cost,
            is_group: false,
        }
    }

    /// Appends a character to a literal. Returns whether this is one.
    pub(super) fn append(&mut self, c: char, is_folded: bool) -> bool {
        match &mut self.node {
            Node::Literal { text, folds } if *folds == is_folded => {
                text.push(c);
                self.is_group = false;
                self.shape = Shape::Other;
                self.cost = self.cost.saturating_add(character_cost(c, is_folded));
                true
            }
            _ => false,
        }
    }

    /// Takes the last character from a literal of several.
    pub(super) fn split_last(&mut self) -> Option<Self> {
        let Node::Literal { text, folds } = &mut self.node else {
            return None;
        };
        let last = text.chars().next_back()?;
        if self.is_group || text.len() == last.len_utf8() {
            return None;
        }
        text.pop();
        let last = Self::character(last, *folds);
        self.cost = self.cost.saturating_sub(last.cost);
        Some(last)
    }

    /// The part as a group. One with a number is a level of its own.
    pub(super) fn grouped(mut self, is_numbered: bool) -> Self {
        if is_numbered {
            self.height += 1;
            self.shape = Shape::Other;
        }
        self.is_group = true;
        self
    }

    pub(super) fn repeated(self, bounds: Bounds, is_greedy: bool) -> Self {
        let copies = bounds.copies();
        let cost = self.cost.saturating_add(STEP).saturating_mul(copies);
        // Nothing of a part that is never there is counted.
        let repeats = match bounds.most {
            Some(0) => 1,
            _ => self.repeats.saturating_mul(bounds.factor()),
        };
        Self {
            height: self.height + 1,
            shape: Shape::Other,
            repeats,
            is_group: false,
            cost: cost.saturating_add(STEP),
            node: Node::Repeat(Box::new(Repeat {
                node: self.node,
                bounds,
                is_greedy,
            })),
        }
    }

    pub(super) fn concat(parts: Vec<Self>) -> Self {
        Self::all(parts, Shape::Concat, Node::Concat)
    }

    pub(super) fn alternate(parts: Vec<Self>) -> Self {
        let is_class = parts.iter().all(|part| part.shape == Shape::Character);
        let mut all = Self::all(parts, Shape::Alternate, Node::Alternate);
        // Go makes a class of them.
        if is_class && all.shape == Shape::Alternate {
            all.shape = Shape::Character;
            all.height = 1;
        }
        all
    }

    fn all(mut parts: Vec<Self>, shape: Shape, node: fn(Vec<Node>) -> Node) -> Self {
        match parts.len() {
            0 => return Self::empty(),
            1 => return parts.remove(0),
            _ => {}
        }
        let height_in = |part: &Self| part.height - u32::from(part.shape == shape);
        let cost = |part: &Self| part.cost.saturating_add(STEP);
        Self {
            height: 1 + parts.iter().map(height_in).max().unwrap_or(0),
            repeats: parts.iter().map(|part| part.repeats).max().unwrap_or(1),
            cost: parts.iter().map(cost).fold(0, usize::saturating_add),
            node: node(parts.into_iter().map(|part| part.node).collect()),
            shape,
            is_group: false,
        }
    }

    /// Whether it is over the limit of memory.
    pub(super) fn is_too_large(&self) -> bool {
        self.cost > MAX_COST
    }

    /// The bytes of memory of the pattern.
    pub(super) fn cost(&self) -> usize {
        PROGRAM.saturating_add(self.cost)
    }
}
