//! The path of a walk: borrowed steps on the stack, converted to text only for errors.

use crate::field::{CUT, FieldPath, MAX_PATH_BYTES, beginning};

/// One step of the path, with a reference to its parent.
#[derive(Clone, Copy, Debug)]
pub enum Path<'a> {
    /// The document itself.
    Root,
    /// A field of an object.
    Field(&'a Path<'a>, &'a str),
    /// An entry of a map.
    Key(&'a Path<'a>, &'a str),
    /// An item of a list.
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    /// The step to a child: a key of a map, or a field.
    #[inline]
    pub fn step(&'a self, is_map: bool, name: &'a str) -> Path<'a> {
        if is_map {
            Path::Key(self, name)
        } else {
            Path::Field(self, name)
        }
    }

    /// The path in field errors: `spec.ports[0].name`, `data[key]`.
    pub fn field(&self) -> FieldPath {
        let mut text = Text::default();
        self.write(&mut text, &|out, key| {
            out.push("[");
            out.push(key);
            out.push("]");
        });
        if text.path.is_empty() {
            FieldPath::root()
        } else {
            FieldPath::new(text.path)
        }
    }

    /// The path in strict decoding errors, where map keys are like fields: `data.key`.
    pub fn strict(&self) -> String {
        let mut text = Text::default();
        self.write(&mut text, &Text::push_step);
        text.path
    }

    /// The path in Go's type errors: field names only.
    pub fn fields_only(&self) -> String {
        fn write(path: &Path<'_>, out: &mut Text) {
            match path {
                Path::Root => {}
                Path::Key(parent, _) | Path::Index(parent, _) => write(parent, out),
                Path::Field(parent, name) => {
                    write(parent, out);
                    out.push_step(name);
                }
            }
        }
        let mut text = Text::default();
        write(self, &mut text);
        text.path
    }

    fn write(&self, out: &mut Text, key: &dyn Fn(&mut Text, &str)) {
        match self {
            Path::Root => {}
            Path::Field(parent, name) => {
                parent.write(out, key);
                out.push_step(name);
            }
            Path::Key(parent, name) => {
                parent.write(out, key);
                key(out, name);
            }
            Path::Index(parent, index) => {
                parent.write(out, key);
                out.push(&format!("[{index}]"));
            }
        }
    }
}

/// The text of a path. It is truncated at [`MAX_PATH_BYTES`], and nothing is added after that: thousands of errors may
/// be below one key that is as long as a body.
#[derive(Default)]
struct Text {
    path: String,
    is_cut: bool,
}

impl Text {
    fn push(&mut self, part: &str) {
        if self.is_cut {
            return;
        }
        let fitting = beginning(part, MAX_PATH_BYTES - self.path.len());
        self.path.push_str(fitting);
        if fitting.len() < part.len() {
            self.path.push_str(CUT);
            self.is_cut = true;
        }
    }

    fn push_step(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.push(".");
        }
        self.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reader_gets_its_own_spelling() {
        let spec = Path::Field(&Path::Root, "spec");
        let data = Path::Field(&spec, "data");
        let key = Path::Key(&data, "a.b");
        let index = Path::Index(&key, 2);
        let name = Path::Field(&index, "name");
        assert_eq!(name.field().as_str(), "spec.data[a.b][2].name");
        assert_eq!(name.strict(), "spec.data.a.b[2].name");
        assert_eq!(name.fields_only(), "spec.data.name");
        assert_eq!(Path::Root.field(), FieldPath::root());
    }

    #[test]
    fn a_path_that_is_too_long_is_cut_once() {
        let long = "é".repeat(3000);
        let spec = Path::Field(&Path::Root, "spec");
        let key = Path::Key(&spec, &long);
        let name = Path::Field(&key, "name");
        for text in [name.field().as_str(), &name.strict()] {
            let (kept, behind) = text.split_at(text.len() - CUT.len());
            assert!(text.len() <= MAX_PATH_BYTES + CUT.len(), "{}", text.len());
            assert!(kept.ends_with('é') && behind == CUT, "{text}");
        }
        let fields = Path::Field(&Path::Root, &long);
        assert!(fields.fields_only().ends_with(CUT));
        let below = fields.field().child("a").key(&long).index(1);
        assert_eq!(below, fields.field());
        assert_eq!(
            FieldPath::new("a").key(&long).key(&long).as_str().len(),
            1027
        );
    }
}
