//! Listing clients: whole lists or pages, of current or past states, in every format and encoding.

use std::io::Read as _;
use std::sync::Arc;

use apiloom_tests::Answer;
use serde_json::Value;
use tokio::time::Instant;

use crate::PATIENCE;
use crate::interest::Interest;
use crate::model::Revision;
use crate::objects::{Form, Include, Key, Meta, settle_table};
use crate::random::{Random, one_in, pick};
use crate::site::Place;
use crate::writer::Ledger;

/// The state that a list must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All acknowledged writes.
    Present,
    /// Any state.
    Any,
    /// This state or a later one.
    AtLeast(Revision),
    /// Exactly this state.
    Exactly(Revision),
}

impl Wanted {
    pub(crate) fn random(random: &mut Random, ledger: &Ledger) -> Self {
        let first = ledger.first();
        let length = usize::try_from(ledger.newest() - first).unwrap() + 1;
        let revision = first + random.below(length) as u64;
        match random.below(6) {
            0 | 1 => Self::Present,
            2 => Self::Any,
            3 => Self::AtLeast(revision),
            _ => Self::Exactly(revision),
        }
    }

    /// The query parameters for it, with or without pages.
    fn query(self, in_pages: bool) -> String {
        match self {
            Self::Present => String::new(),
            Self::Any => "&resourceVersion=0".to_owned(),
            Self::AtLeast(revision) => {
                format!("&resourceVersion={revision}&resourceVersionMatch=NotOlderThan")
            }
            // In a list with pages a plain resourceVersion means exactly this one.
            Self::Exactly(revision) if in_pages => format!("&resourceVersion={revision}"),
            Self::Exactly(revision) => {
                format!("&resourceVersion={revision}&resourceVersionMatch=Exact")
            }
        }
    }
}

/// The encoding of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Json,
    Yaml,
    Gzip,
}

/// A client that lists.
pub(crate) struct Lister {
    pub(crate) place: Place,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) interest: Interest,
    pub(crate) form: Form,
}

/// The result of a list, with all its pages.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) era: usize,
    pub(crate) interest: Interest,
    pub(crate) form: Form,
    pub(crate) wanted: Wanted,
    /// The newest acknowledged revision before the list.
    pub(crate) known: Revision,
    pub(crate) deletions: usize,
    pub(crate) url: String,
    pub(crate) revision: Revision,
    pub(crate) items: Vec<Value>,
    /// The number of items after each page, and the reported remaining count.
    pub(crate) pages: Vec<(usize, Option<u64>)>,
    /// An inconsistency within the list itself.
    pub(crate) fault: Option<String>,
}

impl Listing {
    /// The objects that a client keeps of it.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (Key, Value)> {
        let shown = self.items.iter().filter_map(|item| self.form.object(item));
        let resource = self.interest.resource;
        shown.map(move |shown| {
            let mut object = shown.clone();
            // A list has its items' kind only once.
            if self.form == Form::Object {
                object["apiVersion"] = self.interest.version.api_version().into();
                object["kind"] = resource.kind().into();
            }
            (Key::of(resource, &object), object)
        })
    }
}

impl Lister {
    /// A random list.
    pub(crate) fn random(place: Place, ledger: Arc<Ledger>, random: &mut Random) -> Self {
        let meta = pick(random, &[Meta::V1, Meta::V1beta1]);
        let include = pick(random, &[Include::Metadata, Include::Object, Include::None]);
        let form = pick(
            random,
            &[
                Form::Object,
                Form::Object,
                Form::Partial(meta),
                Form::Table(meta, include),
            ],
        );
        Self {
            place,
            ledger,
            interest: Interest::random(random),
            form,
        }
    }

    /// Lists; `None` if the server stopped.
    pub(crate) async fn list(&self, wanted: Wanted, random: &mut Random) -> Option<Listing> {
        let limit = one_in(random, 2).then(|| 1 + random.below(5));
        let mut encodings = vec![Encoding::Json, Encoding::Gzip];
        // No client requests tables as YAML.
        if !matches!(self.form, Form::Table(..)) {
            encodings.push(Encoding::Yaml);
        }
        let encoding = pick(random, &encodings);
        let begin = Instant::now();
        loop {
            let listing = self.try_list(wanted, limit, encoding, random).await?;
            // A server that is behind for longer than the timeout reports that.
            match listing {
                Some(listing) => return Some(listing),
                None => assert!(begin.elapsed() < PATIENCE, "a server stays behind"),
            }
        }
    }

    async fn try_list(
        &self,
        wanted: Wanted,
        limit: Option<usize>,
        encoding: Encoding,
        random: &mut Random,
    ) -> Option<Option<Listing>> {
        let base = self.interest.list_url() + self.form.query();
        let limit = limit.map(|limit| format!("&limit={limit}"));
        let limit = limit.unwrap_or_default();
        let first = format!("{base}{}{limit}", wanted.query(!limit.is_empty()));
        let mut listing = Listing {
            era: self.place.era,
            interest: self.interest.clone(),
            form: self.form,
            wanted,
            known: self.ledger.newest(),
            deletions: self.ledger.deletions(),
            url: first.clone(),
            revision: 0,
            items: Vec::new(),
            pages: Vec::new(),
            fault: None,
        };
        let mut url = first;
        loop {
            let answer = self.get(&url, encoding, random).await?;
            if answer.code == 504 {
                return Some(None);
            }
            let page = match answer.code {
                200 => decode(&answer, encoding),
                code => Err(format!("{code}: {}", answer.text())),
            };
            let token = match page.and_then(|page| listing.take(page)) {
                Ok(token) => token,
                Err(fault) => {
                    listing.fault = Some(format!("{url}: {fault}"));
                    return Some(Some(listing));
                }
            };
            let Some(token) = token else {
                return Some(Some(listing));
            };
            url = format!("{base}{limit}&continue={token}");
        }
    }

    async fn get(&self, url: &str, encoding: Encoding, random: &mut Random) -> Option<Answer> {
        let media_type = match encoding {
            Encoding::Yaml => "application/yaml",
            _ => "application/json",
        };
        let accept = format!("{media_type}{}", self.form.parameters(true));
        let mut headers = vec![("accept", accept.as_str())];
        if encoding == Encoding::Gzip {
            headers.push(("accept-encoding", "gzip"));
        }
        // The next page may come from another server.
        let client = &pick(random, &self.place.servers).http2;
        client.try_call("GET", url, &headers, "").await.ok()
    }
}

impl Listing {
    /// Reads a page; returns the token of the next one.
    fn take(&mut self, mut page: Value) -> Result<Option<String>, String> {
        let field = if let Form::Table(..) = self.form {
            settle_table(self.interest.resource, &mut page)?;
            "rows"
        } else {
            "items"
        };
        let kind = match self.form {
            Form::Object => format!("{}List", self.interest.resource.kind()),
            Form::Partial(_) => "PartialObjectMetadataList".to_owned(),
            Form::Table(..) => "Table".to_owned(),
        };
        if page["kind"] != kind.as_str() {
            return Err(format!("it is a {}", page["kind"]));
        }
        let Value::Array(items) = page[field].take() else {
            return Err(format!("no {field}"));
        };
        self.items.extend(items);
        let metadata = &page["metadata"];
        let revision = metadata["resourceVersion"].as_str();
        let revision: Revision = revision
            .and_then(|text| text.parse().ok())
            .ok_or("no revision")?;
        if !self.pages.is_empty() && revision != self.revision {
            return Err(format!(
                "a page at {revision} after one at {}",
                self.revision
            ));
        }
        self.revision = revision;
        let token = metadata.get("continue").and_then(Value::as_str);
        let left = metadata.get("remainingItemCount").and_then(Value::as_u64);
        self.pages.push((self.items.len(), left));
        Ok(token.filter(|token| !token.is_empty()).map(str::to_owned))
    }
}

fn decode(answer: &Answer, encoding: Encoding) -> Result<Value, String> {
    let mut body = answer.body.to_vec();
    if answer.header("content-encoding") == "gzip" {
        let mut whole = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(body.as_slice());
        decoder
            .read_to_end(&mut whole)
            .map_err(|error| error.to_string())?;
        body = whole;
    }
    match encoding {
        Encoding::Yaml => serde_saphyr::from_slice(&body).map_err(|error| error.to_string()),
        _ => serde_json::from_slice(&body).map_err(|error| error.to_string()),
    }
}
