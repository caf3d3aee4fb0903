//! What calls of functions cost at most, and the sizes of their results.

use super::cost::Cost;
use super::known::Estimator;
use super::paths::Step;
use crate::ast::{Call, Expr, Kind, Literal};
use crate::meter::LIST_COST;
use crate::types::Type;

/// The cost of a call without that of its arguments, and the size of its result if the function says it.
pub(super) type Estimate = (Cost, Option<Cost>);

const ONE: Cost = Cost::fixed(1);

/// The size of an address, in bytes.
const ADDRESS: Cost = Cost { min: 4, max: 16 };

/// The part of a pattern's length that counts.
const PATTERN: f64 = 0.25;

/// A call with what is known of the sizes of its parts.
pub(super) struct SizedCall<'e> {
    pub(super) call: &'e Call,
    pub(super) target: Option<Cost>,
    pub(super) args: Vec<Option<Cost>>,
}

impl<'e> SizedCall<'e> {
    fn arg(&self, index: usize) -> Cost {
        let size = self.args.get(index).copied().flatten();
        size.unwrap_or(Cost::UNKNOWN)
    }

    fn target(&self) -> Cost {
        self.target.unwrap_or(Cost::UNKNOWN)
    }

    /// An argument that is an integer literal.
    fn int(&self, index: usize) -> Option<i64> {
        match self.call.args.get(index)?.kind {
            Kind::Literal(Literal::Int(number)) => Some(number),
            _ => None,
        }
    }

    /// An argument that is a literal number of elements.
    fn count(&self, index: usize) -> Option<u64> {
        self.int(index)
            .map(|number| u64::try_from(number).unwrap_or(0))
    }

    fn first(&self) -> Option<&'e Expr> {
        self.call.target.as_ref().or(self.call.args.first())
    }
}

impl<'c> Estimator<'c> {
    pub(super) fn function(&self, sized: &SizedCall<'c>) -> Estimate {
        let (arg, size) = (|index| sized.arg(index), sized.target());
        let is_member = sized.call.target.is_some();
        match &*sized.call.name {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                (self.visit_all(sized), None)
            }
            "url" => (arg(0).pass(), Some(arg(0))),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => (size.pass(), Some(size)),
            "replace" => (size.by(0.2), Some(replaced(size, arg(0), arg(1)))),
            "split" => {
                // As there, a negative limit counts as a large one.
                let most = sized.int(1).map_or(size.max, |limit| limit as u64);
                (size.by(0.2), Some(Cost::up_to(most)))
            }
            "join" => {
                let joined = self.joined(sized);
                (joined.pass(), Some(joined))
            }
            "find" | "findAll" => (search(size, arg(0)), Some(Cost::up_to(size.max))),
            // The function that is no member costs as if it did not look at the text.
            "matches" if is_member => (search(size, arg(0)), None),
            "contains" => (size.pass().times(arg(0).pass()), None),
            "startsWith" | "endsWith" => (arg(0).pass(), None),
            "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                (arg(0).pass(), None)
            }
            "ip" if !is_member => (arg(0).pass(), None),
            "ip.isCanonical" => (arg(0).by(0.2), None),
            "containsIP" | "containsCIDR" => (self.contains_address(sized), None),
            "validate" => (arg(0).pass().by(32.0), None),
            "format" => (size.pass(), None),
            "bytes" | "string" => self.conversion(sized),
            "strings.quote" => {
                // Unknown sizes overflow there.
                let result = Cost {
                    min: arg(0).min.wrapping_add(2),
                    max: arg(0).max.wrapping_mul(2).wrapping_add(2),
                };
                (arg(0).pass(), Some(result))
            }
            "sets.contains" | "sets.intersects" => (arg(0).times(arg(1)).by(1.0) + ONE, None),
            "sets.equivalent" => (arg(0).times(arg(1)).by(2.0) + ONE, None),
            _ => self.list_function(sized).unwrap_or((ONE, None)),
        }
    }

    /// The functions whose results are lists of an own size.
    fn list_function(&self, sized: &SizedCall<'c>) -> Option<Estimate> {
        let size = sized.target();
        Some(match &*sized.call.name {
            "slice" => {
                let end = sized.count(1).unwrap_or(size.max);
                let length = end.wrapping_sub(sized.count(0).unwrap_or(0));
                new_list(1.0, Cost::fixed(length))
            }
            "reverse" => new_list(1.0, size),
            "distinct" => new_list(2.0, size.times(size)),
            "sort" => match sized.first().map(|list| self.type_of(list)) {
                Some(Type::List(items)) => sorted(items, size),
                _ => sorted(&Type::Dyn, size),
            },
            "flatten" => {
                let is_shallow = sized.call.args.is_empty();
                let depth = if is_shallow { Some(1) } else { sized.count(0) };
                new_list(depth.unwrap_or(u64::MAX) as f64, size)
            }
            "lists.range" => new_list(1.0, Cost::fixed(sized.count(0).unwrap_or(u64::MAX))),
            _ => return None,
        })
    }

    /// A look at each item of a list, or at each character of a text.
    fn visit_all(&self, sized: &SizedCall<'c>) -> Cost {
        let size = sized.target();
        let Some(target) = &sized.call.target else {
            return ONE;
        };
        let Type::List(items) = self.type_of(target) else {
            return size.pass();
        };
        let each = if matches!(**items, Type::Text | Type::Bytes) {
            ONE + self.item_size(target).pass()
        } else {
            ONE
        };
        size.times(each)
    }

    /// The size of the text of all items.
    fn joined(&self, sized: &SizedCall<'c>) -> Cost {
        let size = sized.target();
        let list = sized.call.target.as_ref();
        let list = list.filter(|list| matches!(self.type_of(list), Type::List(_)));
        let items = list.map_or(Cost::default(), |list| size.times(self.item_size(list)));
        if sized.args.is_empty() {
            return items;
        }
        let between = Cost {
            min: size.min.saturating_sub(1),
            max: size.max.saturating_sub(1),
        };
        items + sized.arg(0).times(between)
    }

    /// The size of the items of a list, which is known only of a list of the document.
    fn item_size(&self, list: &Expr) -> Cost {
        let path = self.path(list);
        let size = path.and_then(|path| self.paths.size(path, self.this, Some(Step::Element)));
        size.unwrap_or(Cost::UNKNOWN)
    }

    fn contains_address(&self, sized: &SizedCall<'c>) -> Cost {
        let mut cost = (ADDRESS + ADDRESS).pass();
        if &*sized.call.name == "containsCIDR" {
            cost = cost + ADDRESS.pass() + ONE;
        }
        let of_text = cost + sized.arg(0).pass();
        match sized.call.args.first().map(|arg| self.type_of(arg)) {
            Some(Type::Text) => of_text,
            Some(Type::Dyn) => cost.union(of_text),
            _ => cost,
        }
    }

    /// Between text and bytes; other conversions cost no more than a call.
    fn conversion(&self, sized: &SizedCall<'c>) -> Estimate {
        let size = sized.arg(0);
        let found = sized.call.args.first().map(|arg| self.type_of(arg));
        let result = match (&*sized.call.name, found) {
            ("bytes", Some(Type::Text | Type::Dyn)) => Cost {
                min: size.min,
                // Unknown sizes overflow there.
                max: size.max.wrapping_mul(4),
            },
            ("string", Some(Type::Bytes | Type::Dyn)) => Cost {
                min: size.min / 4,
                max: size.max,
            },
            _ => return (ONE, None),
        };
        let cost = match found {
            Some(Type::Dyn) => size.pass().union(ONE),
            _ => size.pass(),
        };
        (cost, Some(result))
    }
}

/// A search for a pattern. An empty text counts as one character.
fn search(size: Cost, pattern: Cost) -> Cost {
    (size + ONE).pass().times(pattern.by(PATTERN))
}

/// The cost of a function that makes a list of a size, and that size.
fn new_list(factor: f64, size: Cost) -> Estimate {
    (size.by(factor) + Cost::fixed(1 + LIST_COST), Some(size))
}

/// The cost of sorting as many keys of a type. The result's size is that of the comparisons.
pub(super) fn sorted(keys: &Type, size: Cost) -> Estimate {
    let all = size.times(size);
    let (plain, text) = (new_list(2.0, all), new_list(2.1, all));
    match keys {
        Type::Text | Type::Bytes => text,
        Type::Dyn => (plain.0.union(text.0), Some(all)),
        _ => plain,
    }
}

/// The size of a text after a replacement.
fn replaced(size: Cost, old: Cost, new: Cost) -> Cost {
    let parts = |size: u64, of: u64| (size as f64 / of as f64).ceil() as u64;
    let most = if old.min == 0 {
        // New text is put around every character.
        let count = size.max.saturating_add(1);
        count.saturating_mul(new.max).saturating_add(size.max)
    } else if new.max <= old.min {
        size.max
    } else {
        parts(size.max, old.min).saturating_mul(new.max)
    };
    let least = if old.max == 0 {
        let count = size.min.saturating_add(1);
        count.saturating_mul(new.min).saturating_add(size.min)
    } else if old.max <= new.min {
        size.min
    } else {
        parts(size.min, old.max).saturating_mul(new.min)
    };
    Cost {
        min: least,
        max: most,
    }
}
