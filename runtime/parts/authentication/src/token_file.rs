//! Users by a file of tokens: lines of token, user, uid and optional groups, separated by commas, as that of kube-apiserver.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use apiloom_registry::auth::{Answer, Authentication, Authenticator, Credentials, UserInfo};
use csv::ReaderBuilder;

use crate::confirmations::{Hash, hash};

/// The users of a file by digests of their tokens: a lookup takes the same time for every token that is not there.
type Users = HashMap<Hash, Arc<UserInfo>>;

/// Authenticates by the tokens of a file, which is read once.
pub(crate) struct TokenFile {
    path: PathBuf,
    users: OnceLock<Users>,
}

/// Without the digests, by which a token could be guessed.
impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl TokenFile {
    /// One that knows no users before it is read.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            users: OnceLock::new(),
        }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// A file that cannot be read, and the first line that is wrong.
    pub(crate) fn read(&self) -> Result<(), String> {
        let shown = self.path.display();
        let text = std::fs::read(&self.path);
        let text =
            text.map_err(|error| format!("cannot read the file of tokens {shown}: {error}"))?;
        let users = parse(&text).map_err(|why| format!("the file of tokens {shown} {why}"))?;
        // The first one is kept.
        let _ = self.users.set(users);
        Ok(())
    }

    fn user(&self, token: &[u8]) -> Option<&Arc<UserInfo>> {
        self.users.get()?.get(&hash(token))
    }
}

/// The users of the lines of a file.
///
/// # Errors
/// The first line that is wrong.
fn parse(text: &[u8]) -> Result<Users, String> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text);
    let mut users = HashMap::new();
    for record in reader.records() {
        let record = record.map_err(|error| format!("cannot be read: {error}"))?;
        let line = record.position().map_or(0, csv::Position::line);
        let (Some(token), Some(name), Some(uid)) = (record.get(0), record.get(1), record.get(2))
        else {
            let found = record.len();
            return Err(format!(
                "must have at least 3 columns (token, user name, user uid), found {found} in line {line}"
            ));
        };
        if token.is_empty() {
            tracing::warn!(line, "a line of the file of tokens has no token");
            continue;
        }
        let groups = record.get(3).unwrap_or_default();
        let user = UserInfo {
            name: name.to_owned(),
            uid: uid.to_owned(),
            groups: groups
                .split(',')
                .filter(|group| !group.is_empty())
                .map(str::to_owned)
                .collect(),
            ..UserInfo::default()
        };
        if users
            .insert(hash(token.as_bytes()), Arc::new(user))
            .is_some()
        {
            tracing::warn!(
                line,
                "a token stands twice in the file of tokens, and the last line counts"
            );
        }
    }
    Ok(users)
}

impl Authenticator for TokenFile {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        let user = credentials.token().and_then(|token| self.user(token));
        Answer::Now(Ok(user.cloned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_token_a_user_and_groups() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.csv");
        let text = "tok,admin,1,\"system:masters\"\nt2,carol,u-c,\"team,other\"\n\n\"a \"\"b\"\"\",bob,u-b\nt2,dora,u-d,\n,nobody,x\n";
        std::fs::write(&path, text).unwrap();
        let file = TokenFile::new(path);
        let user = |token: &str| file.user(token.as_bytes()).map(|user| (**user).clone());
        assert_eq!(user("tok"), None);
        file.read().unwrap();
        let admin = user("tok").unwrap();
        assert_eq!((&*admin.name, &*admin.uid), ("admin", "1"));
        assert_eq!(admin.groups, ["system:masters"]);
        // The last line of a token counts.
        assert_eq!(user("t2").unwrap().name, "dora");
        assert!(user("t2").unwrap().groups.is_empty());
        assert_eq!(user("a \"b\"").unwrap().name, "bob");
        assert_eq!(user(""), None);
        assert_eq!(user("unknown"), None);
        assert!(!format!("{file:?}").contains("admin"));
    }

    #[test]
    fn a_line_that_is_too_short_is_named() {
        let error = parse(b"tok,admin,1\nt2,bob\n").unwrap_err();
        assert_eq!(
            error,
            "must have at least 3 columns (token, user name, user uid), found 2 in line 2"
        );
        let error = TokenFile::new(PathBuf::from("/none/tokens.csv"))
            .read()
            .unwrap_err();
        assert!(
            error.starts_with("cannot read the file of tokens /none/tokens.csv: "),
            "{error}"
        );
    }
}
