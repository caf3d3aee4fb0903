//! The classes of characters that have names: Unicode's categories and scripts, and those of Perl and POSIX.
//!
//! The names are those of Go 1.26, with which Kubernetes 1.36 is built: any case, spaces, hyphens and underscores do not count, and so
//! scripts whose names have an underscore are unknown. The tables are of the crate `regex-syntax`, which may know characters that are
//! newer than Go's Unicode 15.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use super::cost::MAX_COST;
use regex_automata::nfa::thompson::{Compiler, Config, WhichCaptures};
use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};

/// Ranges of ASCII characters.
pub(super) type Ascii = &'static [(u8, u8)];

/// The characters of a property, alone and with all their cases.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) exact: Set,
    pub(super) folded: Set,
}

/// A set of characters.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) class: ClassUnicode,
    /// The memory of its automata over the bytes of UTF-8.
    pub(super) cost: usize,
    /// The memory of the automata of all other characters.
    pub(super) cost_of_others: usize,
}

impl Set {
    fn new(class: ClassUnicode) -> Self {
        let mut others = class.clone();
        others.negate();
        Self {
            cost: cost(class.clone()),
            cost_of_others: cost(others),
            class,
        }
    }
}

impl Table {
    /// The table of a name as it stands in `\p{...}`, without a leading `^`.
    pub(super) fn named(name: &str) -> Option<Arc<Self>> {
        /// Bounded by the number of names.
        static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Table>>>> = LazyLock::new(Mutex::default);
        let query = query(&canonical(name))?;
        // An entry is inserted in one step.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = known.get(&query) {
            return Some(Arc::clone(table));
        }
        let table = Arc::new(Self::read(&query));
        known.insert(query, Arc::clone(&table));
        Some(table)
    }

    fn read(query: &str) -> Self {
        let exact = match regex_syntax::parse(&format!(r"\p{{{query}}}")) {
            Ok(hir) => match hir.into_kind() {
                HirKind::Class(Class::Unicode(class)) => class,
                _ => ClassUnicode::empty(),
            },
            // Surrogates, which no text in UTF-8 has.
            Err(_) => ClassUnicode::empty(),
        };
        let mut folded = exact.clone();
        // Cannot fail: the tables of cases are compiled in.
        let _ = folded.try_case_fold_simple();
        Self {
            exact: Set::new(exact),
            folded: Set::new(folded),
        }
    }
}

/// The memory of the automata of a set in both directions.
fn cost(class: ClassUnicode) -> usize {
    let hir = Hir::class(Class::Unicode(class));
    let size = |is_reverse| {
        let config = Config::new().which_captures(WhichCaptures::None);
        let mut compiler = Compiler::new();
        compiler.configure(config.reverse(is_reverse));
        // Cannot fail: the automaton has no limit.
        let automaton = compiler.build_from_hir(&hir);
        automaton.map_or(MAX_COST, |automaton| automaton.memory_usage())
    };
    size(false) + size(true)
}

/// A name with a leading capital and small letters, without what does not count.
fn canonical(name: &str) -> String {
    let counts = |c: &char| !matches!(c, '_' | '-' | ' ');
    let mut canonical = String::with_capacity(name.len());
    for c in name.chars().filter(counts) {
        canonical.push(if canonical.is_empty() {
            c.to_ascii_uppercase()
        } else {
            c.to_ascii_lowercase()
        });
    }
    canonical
}

/// The property of a name, as `regex-syntax` calls it.
fn query(name: &str) -> Option<String> {
    if let "Any" | "Assigned" | "Ascii" = name {
        return Some(name.to_owned());
    }
    let category = match name {
        "Lc" => Some("LC"),
        _ => CATEGORIES.iter().copied().find(|known| *known == name),
    };
    let alias = || ALIASES.iter().find(|(alias, _)| *alias == name);
    if let Some(category) = category.or_else(|| alias().map(|(_, category)| *category)) {
        return Some(format!("gc={category}"));
    }
    SCRIPTS.contains(&name).then(|| format!("sc={name}"))
}

/// The class of a letter after a backslash, and whether the letter means its opposite.
pub(super) fn perl(letter: char) -> Option<(Ascii, bool)> {
    let class: Ascii = match letter.to_ascii_lowercase() {
        'd' => DIGIT,
        's' => &[(b'\t', b'\n'), (b'\x0c', b'\r'), (b' ', b' ')],
        'w' => WORD,
        _ => return None,
    };
    Some((class, letter.is_ascii_uppercase()))
}

/// The class of a name in `[:...:]`, and whether the name means its opposite.
pub(super) fn posix(name: &str) -> Option<(Ascii, bool)> {
    let (name, is_negated) = match name.strip_prefix('^') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let class: Ascii = match name {
        "alnum" => &[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')],
        "alpha" => &[(b'A', b'Z'), (b'a', b'z')],
        "ascii" => &[(0, 0x7f)],
        "blank" => &[(b'\t', b'\t'), (b' ', b' ')],
        "cntrl" => &[(0, 0x1f), (0x7f, 0x7f)],
        "digit" => DIGIT,
        "graph" => &[(b'!', b'~')],
        "lower" => &[(b'a', b'z')],
        "print" => &[(b' ', b'~')],
        "punct" => &[(b'!', b'/'), (b':', b'@'), (b'[', b'`'), (b'{', b'~')],
        "space" => &[(b'\t', b'\r'), (b' ', b' ')],
        "upper" => &[(b'A', b'Z')],
        "word" => WORD,
        "xdigit" => &[(b'0', b'9'), (b'A', b'F'), (b'a', b'f')],
        _ => return None,
    };
    Some((class, is_negated))
}

const DIGIT: Ascii = &[(b'0', b'9')];
const WORD: Ascii = &[(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')];

#[rustfmt::skip]
const CATEGORIES: &[&str] = &[
    "C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd",
    "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp",
    "Zs",
];

#[rustfmt::skip]
const ALIASES: &[(&str, &str)] = &[
    ("Casedletter", "LC"), ("Closepunctuation", "Pe"), ("Cntrl", "Cc"), ("Combiningmark", "M"),
    ("Connectorpunctuation", "Pc"), ("Control", "Cc"), ("Currencysymbol", "Sc"), ("Dashpunctuation", "Pd"),
    ("Decimalnumber", "Nd"), ("Digit", "Nd"), ("Enclosingmark", "Me"), ("Finalpunctuation", "Pf"),
    ("Format", "Cf"), ("Initialpunctuation", "Pi"), ("Letter", "L"), ("Letternumber", "Nl"),
    ("Lineseparator", "Zl"), ("Lowercaseletter", "Ll"), ("Mark", "M"), ("Mathsymbol", "Sm"),
    ("Modifierletter", "Lm"), ("Modifiersymbol", "Sk"), ("Nonspacingmark", "Mn"), ("Number", "N"),
    ("Openpunctuation", "Ps"), ("Other", "C"), ("Otherletter", "Lo"), ("Othernumber", "No"),
    ("Otherpunctuation", "Po"), ("Othersymbol", "So"), ("Paragraphseparator", "Zp"), ("Privateuse", "Co"),
    ("Punct", "P"), ("Punctuation", "P"), ("Separator", "Z"), ("Spaceseparator", "Zs"), ("Spacingmark", "Mc"),
    ("Surrogate", "Cs"), ("Symbol", "S"), ("Titlecaseletter", "Lt"), ("Unassigned", "Cn"),
    ("Uppercaseletter", "Lu"),
];

#[rustfmt::skip]
const SCRIPTS: &[&str] = &[
    "Adlam", "Ahom", "Arabic", "Armenian", "Avestan", "Balinese", "Bamum", "Batak", "Bengali", "Bhaiksuki",
    "Bopomofo", "Brahmi", "Braille", "Buginese", "Buhid", "Carian", "Chakma", "Cham", "Cherokee", "Chorasmian",
    "Common", "Coptic", "Cuneiform", "Cypriot", "Cyrillic", "Deseret", "Devanagari", "Dogra", "Duployan",
    "Elbasan", "Elymaic", "Ethiopic", "Georgian", "Glagolitic", "Gothic", "Grantha", "Greek", "Gujarati",
    "Gurmukhi", "Han", "Hangul", "Hanunoo", "Hatran", "Hebrew", "Hiragana", "Inherited", "Javanese", "Kaithi",
    "Kannada", "Katakana", "Kawi", "Kharoshthi", "Khmer", "Khojki", "Khudawadi", "Lao", "Latin", "Lepcha",
    "Limbu", "Lisu", "Lycian", "Lydian", "Mahajani", "Makasar", "Malayalam", "Mandaic", "Manichaean", "Marchen",
    "Medefaidrin", "Miao", "Modi", "Mongolian", "Mro", "Multani", "Myanmar", "Nabataean", "Nandinagari", "Newa",
    "Nko", "Nushu", "Ogham", "Oriya", "Osage", "Osmanya", "Palmyrene", "Phoenician", "Rejang", "Runic",
    "Samaritan", "Saurashtra", "Sharada", "Shavian", "Siddham", "Sinhala", "Sogdian", "Soyombo", "Sundanese",
    "Syriac", "Tagalog", "Tagbanwa", "Takri", "Tamil", "Tangsa", "Tangut", "Telugu", "Thaana", "Thai", "Tibetan",
    "Tifinagh", "Tirhuta", "Toto", "Ugaritic", "Vai", "Vithkuqi", "Wancho", "Yezidi", "Yi",
];
