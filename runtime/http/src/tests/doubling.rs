//! The cost of a body is linear in its size, for every shape: each shape is sent once and with double size, and the
//! thread's CPU time may grow at most by a factor of 3; a doubt is settled with four times the size. Quadratic work would
//! occupy a thread for minutes with a body of 3 MiB. The response must not be much larger than the request.

mod pile;

use std::fmt::Write as _;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use pile::{Pile, PileRules};

use super::*;

const PILES: &str = "/apis/wardle.example.com/v1alpha1/piles";
const PILE: &str = "/apis/wardle.example.com/v1alpha1/piles/a";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const MERGE: &str = "application/merge-patch+json";
const PATCH: &str = "application/json-patch+json";

/// A request with a body of variable size.
struct Request {
    method: &'static str,
    url: String,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

impl Request {
    fn new(method: &'static str, url: &str, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self {
            method,
            url: url.to_owned(),
            headers: vec![("content-type", content_type.to_owned())],
            body: body.into(),
        }
    }

    fn len(&self) -> usize {
        let headers = self.headers.iter().map(|(_, value)| value.len());
        self.url.len() + self.body.len() + headers.sum::<usize>()
    }

    /// Beginning of the body.
    fn shown(&self) -> String {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(200)]);
        format!("{} {} bytes: {body}", self.method, self.len())
    }

    /// Sends the request and checks its code; returns the length of the response with its headers, and the thread's
    /// CPU time.
    async fn send(&self, api: &Api, code: u16) -> (usize, Duration) {
        let mut request = http::Request::builder().method(self.method).uri(&self.url);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(self.body.clone())).unwrap();
        let before = thread_time();
        let response = open_with(api, request).await;
        let (parts, body) = response.into_parts();
        let answer = body.collect().await.unwrap().to_bytes();
        let took = thread_time() - before;
        let text = String::from_utf8_lossy(&answer[..answer.len().min(300)]);
        assert_eq!(parts.status.as_u16(), code, "{}\n{text}", self.shown());
        let headers = parts.headers.values().map(http::HeaderValue::len);
        (answer.len() + headers.sum::<usize>(), took)
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// The cost of a request on a new API.
async fn cost(before: Option<&Request>, request: &Request, code: u16) -> Duration {
    let api = api_of(|registry| {
        registry.kind::<Pile>();
        registry.strategy::<Pile>(PileRules);
    })
    .await;
    if let Some(before) = before {
        before.send(&api, 201).await;
        // The watch cache takes the change on this thread too.
        let list = Request::new("GET", PILES, JSON, "");
        list.send(&api, 200).await;
    }
    let (answer, took) = request.send(&api, code).await;
    let most = 2 * request.len() + 1024 * 1024;
    assert!(answer <= most, "{answer} bytes for {}", request.shown());
    took
}

/// Sizes to compare, and the factor by which the cost may grow.
struct Growth {
    sizes: usize,
    most: u32,
}

/// Quadratic work takes four times as long.
const DOUBLE: Growth = Growth { sizes: 2, most: 3 };

/// Quadratic work takes 16 times as long. It decides when the double is in doubt: on a busy machine the larger document
/// alone may not find its place in the processor's caches.
const QUADRUPLE: Growth = Growth { sizes: 4, most: 8 };

async fn check_after(
    before: Option<&dyn Fn(usize) -> Request>,
    size: usize,
    code: u16,
    request: impl Fn(usize) -> Request,
) {
    let mut seen = Vec::new();
    for Growth { sizes, most } in [DOUBLE, QUADRUPLE] {
        let made = [size, sizes * size].map(|n| (before.map(|before| before(n)), request(n)));
        let mut least = [Duration::MAX; 2];
        // Other processes may slow down either request, so the minimum of several runs counts.
        for _ in 0..30 {
            for (least, (before, request)) in least.iter_mut().zip(&made) {
                *least = cost(before.as_ref(), request, code).await.min(*least);
            }
            if least[1] < least[0] * most {
                return;
            }
        }
        seen.push(format!("{sizes} times the size takes {least:?}"));
    }
    let shown = request(size).shown();
    panic!("the cost is not linear: {}: {shown}", seen.join(", "));
}

/// Checks the cost of requests with this response.
async fn check(size: usize, code: u16, request: impl Fn(usize) -> Request) {
    check_after(None, size, code, request).await;
}

/// The items that `one` returns for each number, separated by commas.
fn list(size: usize, one: impl Fn(usize) -> String) -> String {
    let items: Vec<String> = (0..size).map(one).collect();
    items.join(",")
}

fn lines(size: usize, one: impl Fn(usize) -> String) -> String {
    (0..size).fold(String::new(), |mut text, i| {
        let _ = writeln!(text, "{}", one(i));
        text
    })
}

fn create(metadata: &str, spec: &str) -> Request {
    let body = format!(r#"{{"metadata":{{"name":"a"{metadata}}},"spec":{{{spec}}}}}"#);
    Request::new("POST", PILES, JSON, body)
}

fn put(spec: &str) -> Request {
    let body = format!(r#"{{"metadata":{{"name":"a"}},"spec":{{{spec}}}}}"#);
    Request::new("PUT", PILE, JSON, body)
}

fn create_yaml(spec: &str) -> Request {
    let body = format!("metadata:\n  name: a\nspec:\n{spec}");
    Request::new("POST", PILES, YAML, body)
}

fn owner(uid: usize) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"A","name":"a","uid":"u{uid}"}}"#)
}

fn item(i: usize) -> String {
    format!(r#"{{"name":"n{i}","size":1}}"#)
}

fn metadata(name: &str, members: &str) -> Request {
    create(&format!(",\"{name}\":{members}"), "")
}

#[tokio::test]
async fn metadata_costs_what_it_is_long() {
    check(1000, 201, |n| {
        metadata("ownerReferences", &format!("[{}]", list(n, owner)))
    })
    .await;
    check(1000, 201, |n| {
        metadata("ownerReferences", &format!("[{}]", list(n, |_| owner(1))))
    })
    .await;
    let pairs = |i| owner(i / 2);
    check(1000, 201, |n| {
        metadata("ownerReferences", &format!("[{}]", list(n, pairs)))
    })
    .await;
    let controller = |i| owner(i).replace('}', ",\"controller\":true}");
    check(1000, 422, |n| {
        metadata("ownerReferences", &format!("[{}]", list(n, controller)))
    })
    .await;
    check(1000, 422, |n| {
        metadata(
            "ownerReferences",
            &format!("[{}]", list(n, |_| "{}".to_owned())),
        )
    })
    .await;
    check(2500, 201, |n| {
        metadata(
            "finalizers",
            &format!("[{}]", list(n, |i| format!("\"x/{i}\""))),
        )
    })
    .await;
    check(2500, 422, |n| {
        metadata(
            "finalizers",
            &format!("[{}]", list(n, |i| format!("\"{i}\""))),
        )
    })
    .await;
    check(2500, 201, |n| {
        metadata(
            "managedFields",
            &format!("[{}]", list(n, |_| "{}".to_owned())),
        )
    })
    .await;
    check(2500, 201, |n| {
        metadata(
            "labels",
            &format!("{{{}}}", list(n, |i| format!("\"k{i}\":\"v\""))),
        )
    })
    .await;
    check(2500, 422, |n| {
        metadata(
            "labels",
            &format!("{{{}}}", list(n, |i| format!("\"/{i}\":\"/\""))),
        )
    })
    .await;
    check(1250, 201, |n| {
        metadata(
            "annotations",
            &format!("{{{}}}", list(n, |i| format!("\"k{i}\":\"v\""))),
        )
    })
    .await;
    let long = |n: usize| "x".repeat(100 * n);
    check(1000, 422, |n| {
        metadata("annotations", &format!("{{\"{}\":\"\"}}", long(n)))
    })
    .await;
    check(1000, 422, |n| {
        create(&format!(",\"generateName\":\"{}\"", long(n)), "")
    })
    .await;
}

#[tokio::test]
async fn finalizers_that_are_taken_out_cost_what_they_are_long() {
    let finalizers = |n| format!("[{}]", list(n, |i| format!("\"x/{i}\"")));
    let before = |n| metadata("finalizers", &finalizers(n));
    let half = |n| format!("{{\"metadata\":{{\"finalizers\":{}}}}}", finalizers(n / 2));
    check_after(Some(&before), 1250, 200, |n| {
        Request::new("PATCH", PILE, MERGE, half(n))
    })
    .await;
    check_after(Some(&before), 1250, 200, |_| {
        Request::new("DELETE", PILE, JSON, "{\"orphanDependents\":true}")
    })
    .await;
}

#[tokio::test]
async fn lists_cost_what_they_are_long() {
    let spec = |name: &str, items: String| create("", &format!("\"{name}\":[{items}]"));
    check(1250, 201, |n| spec("set", list(n, |i| format!("\"{i}\"")))).await;
    check(1250, 422, |n| spec("set", list(n, |_| "\"a\"".to_owned()))).await;
    check(750, 201, |n| spec("named", list(n, item))).await;
    check(750, 422, |n| spec("named", list(n, |_| item(1)))).await;
    check(750, 422, |n| spec("named", list(n, |_| "{}".to_owned()))).await;
    check(750, 201, |n| spec("unique", list(n, item))).await;
    check(750, 422, |n| spec("unique", list(n, |_| item(1)))).await;
    check(750, 201, |n| spec("atomic", list(n, item))).await;
    check(750, 201, |n| spec("atomic", list(n, |_| item(1)))).await;
    check(750, 422, |n| {
        spec(
            "atomic",
            list(n, |i| format!("{{\"name\":\"n\",\"size\":{}}}", i + 6)),
        )
    })
    .await;
    check(750, 400, |n| spec("atomic", list(n, |_| "1".to_owned()))).await;
    check(1250, 422, |n| {
        spec("words", list(n, |i| format!("\"A{i}\"")))
    })
    .await;
    check(1250, 201, |n| {
        spec("numbers", list(n, |i| format!("{i}.5e-{}", i % 300)))
    })
    .await;
    check(1250, 201, |n| {
        spec("numbers", "1".repeat(200) + &list(n, |_| "1.0".to_owned()))
    })
    .await;
    check(1250, 201, |n| {
        spec(
            "times",
            list(n, |_| "\"2026-11-22T05:06:02.5+02:00\"".to_owned()),
        )
    })
    .await;
    check(750, 201, |n| {
        spec("quantities", list(n, |i| format!("\"{i}Mi\"")))
    })
    .await;
    check(750, 422, |n| {
        spec("labels", list(n, |i| format!("\"/{i}/\"")))
    })
    .await;
    check(750, 201, |n| {
        spec("defaulted", list(n, |_| "{}".to_owned()))
    })
    .await;
    check(750, 201, |n| {
        spec(
            "choices",
            list(n, |i| format!("{{\"{}\":1}}", ["a", "b"][i % 2])),
        )
    })
    .await;
    check(750, 422, |n| {
        spec("choices", list(n, |_| "{\"a\":1,\"b\":1}".to_owned()))
    })
    .await;
}

#[tokio::test]
async fn maps_cost_what_they_are_long() {
    let spec = |name: &str, members: String| create("", &format!("\"{name}\":{{{members}}}"));
    check(1250, 201, |n| {
        spec("texts", list(n, |i| format!("\"k{i}\":\"v\"")))
    })
    .await;
    check(1250, 201, |n| {
        spec("texts", list(n, |i| format!("\"k{i}\":null")))
    })
    .await;
    check(1250, 422, |n| {
        spec("keyed", list(n, |i| format!("\"k{i:04}\":\"v\"")))
    })
    .await;
    check(1250, 201, |n| {
        spec("free", list(n, |i| format!("\"k{}\":null", n - i)))
    })
    .await;
    check(1250, 201, |n| {
        spec("free", list(n, |i| format!("\"k{i}\":{{\"a\":[{i}]}}")))
    })
    .await;
    check(50, 201, |n| {
        spec(
            "free",
            list(n, |i| {
                format!("\"k{i}\":{}1{}", "[".repeat(100), "]".repeat(100))
            }),
        )
    })
    .await;
    // Many errors below one key that is as long as the body.
    let key = |n: usize| "k".repeat(100 * n);
    let big = |i| format!("\"{i}\":{{\"name\":\"n\",\"size\":6}}");
    check(500, 422, |n| {
        spec("objects", format!("\"{}\":{{{}}}", key(n), list(n, big)))
    })
    .await;
    let unknown = |i| format!("\"{i}\":{{\"name\":\"n\",\"unknown\":6}}");
    check(500, 201, |n| {
        spec(
            "objects",
            format!("\"{}\":{{{}}}", key(n), list(n, unknown)),
        )
    })
    .await;
    check(500, 400, |n| {
        let request = spec(
            "objects",
            format!("\"{}\":{{{}}}", key(n), list(n, unknown)),
        );
        Request {
            url: format!("{PILES}?fieldValidation=Strict"),
            ..request
        }
    })
    .await;
    let twice = |_| "\"x\":{\"name\":\"n\"}".to_owned();
    check(500, 201, |n| {
        spec("objects", format!("\"{}\":{{{}}}", key(n), list(n, twice)))
    })
    .await;
    check(500, 400, |n| {
        spec(
            "objects",
            format!("\"{}\":{{{}}}", key(n), "\"x\":{\"size\":\"\"}"),
        )
    })
    .await;
}

#[tokio::test]
async fn fields_that_do_not_belong_cost_what_they_are_long() {
    // Null means absent; a second one is still a duplicate.
    let nulls = |n| list(n, |i| format!("\"k{i}\":null"));
    check(2500, 201, |n| {
        create("", &format!("\"texts\":{{}},{}", nulls(n)))
    })
    .await;
    check(2500, 201, |n| {
        create("", &list(n, |_| "\"set\":null".to_owned()))
    })
    .await;
    check(2500, 201, |n| {
        create("", &list(n, |_| "\"set\":[]".to_owned()))
    })
    .await;
    check(2500, 201, |n| {
        create("", &list(n, |i| format!("\"u{i}\":1")))
    })
    .await;
    check(2500, 201, |n| {
        create("", &list(n, |_| "\"u\":1".to_owned()))
    })
    .await;
    let nulls = |n| list(n, |i| format!("\"k{}\":null", i % (n / 2)));
    check(2500, 201, |n| {
        create("", &format!("\"texts\":{{{}}}", nulls(n)))
    })
    .await;
    check(2500, 201, |n| {
        create("", &format!("\"free\":{{{}}}", nulls(n)))
    })
    .await;
    let absent = |n| {
        let once = |name: &str| list(n / 2, |_| format!("\"{name}\":null"));
        format!("{},{}", once("set"), once("named"))
    };
    check(2_000, 201, |n| create("", &absent(n))).await;
    let names = |n| format!(",\"labels\":{{{}}}", list(n, |i| format!("\"k{i}\":null")));
    check(2500, 201, |n| create(&names(n), "")).await;
}

#[tokio::test]
async fn one_long_value_costs_what_it_is_long() {
    let text = |one: &str, n: usize| create("", &format!("\"text\":\"{}\"", one.repeat(n)));
    // Both are so long that they are searched in steps, which a build without optimization takes five times as long for.
    check(100_000, 201, |n| text("a", n)).await;
    check(25000, 422, |n| text("é", n)).await;
    check(12500, 422, |n| text("\\u0001", n)).await;
    check(12500, 422, |n| text("\\n", n)).await;
    check(12500, 400, |n| {
        create("", &format!("\"times\":[\"{}\"]", "2".repeat(n)))
    })
    .await;
    check(12500, 400, |n| {
        create("", &format!("\"quantities\":[\"{}\"]", "x".repeat(n)))
    })
    .await;
    check(12500, 201, |n| {
        create("", &format!("\"quantities\":[\"1.{}\"]", "0".repeat(n)))
    })
    .await;
    check(12500, 201, |n| {
        create("", &format!("\"numbers\":[1.{}]", "3".repeat(n)))
    })
    .await;
    check(12500, 400, |n| {
        Request::new("POST", PILES, JSON, "[".repeat(n))
    })
    .await;
    check(12500, 400, |n| {
        Request::new("POST", PILES, JSON, "\n".repeat(n) + "x")
    })
    .await;
}

#[tokio::test]
async fn updates_cost_what_they_are_long() {
    let named =
        |n, one: &dyn Fn(usize) -> usize| format!("\"named\":[{}]", list(n, |i| item(one(i))));
    let before = |n| create("", &named(n, &|i| i));
    check_after(Some(&before), 750, 200, |n| put(&named(n, &|i| n - 1 - i))).await;
    check_after(Some(&before), 750, 422, |n| put(&named(n, &|i| n + i))).await;
    let keyed = |n, from: usize| {
        format!(
            "\"keyed\":{{{}}}",
            list(n, |i| format!("\"{:x}\":\"v\"", from + i))
        )
    };
    let before = |n| create("", &keyed(n / 2, 0));
    check_after(Some(&before), 500, 422, |n| put(&keyed(n, n / 2))).await;
    let unique =
        |n, one: &dyn Fn(usize) -> usize| format!("\"unique\":[{}]", list(n, |i| item(one(i))));
    let before = |n| create("", &unique(n, &|i| i));
    check_after(Some(&before), 750, 200, |n| put(&unique(n, &|i| n - 1 - i))).await;
    let free =
        |n, value: &str| format!("\"free\":{{{}}}", list(n, |i| format!("\"k{i}\":{value}")));
    let before = |n| create("", &free(n, "1"));
    check_after(Some(&before), 1250, 200, |n| put(&free(n, "2"))).await;
    check_after(Some(&before), 1250, 200, |_| {
        Request::new("GET", PILE, JSON, "")
    })
    .await;
}

#[tokio::test]
async fn patches_cost_what_they_are_long() {
    let atomic = |n| format!("\"atomic\":[{}]", list(n, item));
    let before = |n| create("", &format!("{},\"free\":{{}},\"texts\":{{}}", atomic(n)));
    let json = |n, one: &dyn Fn(usize) -> String| {
        Request::new("PATCH", PILE, PATCH, format!("[{}]", list(n, one)))
    };
    let merge = |spec: &str| Request::new("PATCH", PILE, MERGE, format!("{{\"spec\":{{{spec}}}}}"));
    let append = |i| {
        format!(
            r#"{{"op":"add","path":"/spec/atomic/-","value":{}}}"#,
            item(i)
        )
    };
    check_after(Some(&before), 500, 200, |n| json(n, &append)).await;
    let add = |i| format!(r#"{{"op":"add","path":"/spec/free/k{i}","value":{{}}}}"#);
    check_after(Some(&before), 500, 200, |n| json(n, &add)).await;
    let test = |_| r#"{"op":"test","path":"/spec/atomic/0/size","value":1}"#.to_owned();
    check_after(Some(&before), 500, 200, |n| json(n, &test)).await;
    let odd =
        |_| r#"{"op":"test","path":"/spec/atomic/0/size","value":1,"odd":1,"odd":2}"#.to_owned();
    check_after(Some(&before), 500, 200, |n| json(n, &odd)).await;
    let too_many = |_| "{}".to_owned();
    check_after(Some(&before), 12_000, 413, |n| json(n, &too_many)).await;
    let path = |n: usize| format!(r#"[{{"op":"add","path":"{}","value":1}}]"#, "/a".repeat(n));
    check_after(Some(&before), 12500, 422, |n| {
        Request::new("PATCH", PILE, PATCH, path(n))
    })
    .await;
    let texts =
        |n, value: &str| format!("\"texts\":{{{}}}", list(n, |i| format!("\"k{i}\":{value}")));
    check_after(Some(&before), 750, 200, |n| merge(&texts(n, "\"v\""))).await;
    check_after(Some(&before), 750, 200, |n| merge(&texts(n, "null"))).await;
    check_after(Some(&before), 750, 200, |n| {
        merge(&format!(
            "\"free\":{{{}}}",
            list(n, |_| "\"k\":1".to_owned())
        ))
    })
    .await;
    // A long key above many unknown or duplicate fields: the text of each error has the path.
    let key = |n: usize| "k".repeat(100 * n);
    let unknown = |i| format!("\"{i}\":{{\"name\":\"n\",\"unknown\":6}}");
    let objects = |n| format!("\"objects\":{{\"{}\":{{{}}}}}", key(n), list(n, unknown));
    let strict = format!("{PILE}?fieldValidation=Strict");
    check_after(Some(&before), 500, 422, |n| Request {
        url: strict.clone(),
        ..merge(&objects(n))
    })
    .await;
    let twice = |n| {
        format!(
            "\"objects\":{{\"{}\":{{{}}}}}",
            key(n),
            list(n, |i| format!("\"{}\":{{\"name\":\"n\"}}", i / 2))
        )
    };
    check_after(Some(&before), 500, 422, |n| Request {
        url: strict.clone(),
        ..merge(&twice(n))
    })
    .await;
}

#[tokio::test]
async fn yaml_costs_what_it_is_long() {
    let spec = |name: &str, text: String| create_yaml(&format!("  {name}:\n{text}"));
    check(500, 201, |n| {
        spec("texts", lines(n, |i| format!("    k{i}: v")))
    })
    .await;
    check(500, 201, |n| {
        spec("texts", lines(n, |_| "    k: v".to_owned()))
    })
    .await;
    check(500, 201, |n| spec("set", lines(n, |i| format!("  - v{i}")))).await;
    check(250, 201, |n| {
        spec(
            "named",
            lines(n, |i| format!("  - name: n{i}\n    size: 1")),
        )
    })
    .await;
    check(500, 201, |n| {
        create_yaml(&format!(
            "  free: {{{}}}\n",
            list(n, |i| format!("k{i}: {i}"))
        ))
    })
    .await;
    check(500, 201, |n| {
        spec("texts", lines(n, |i| format!("    k{i}: v # a comment")))
    })
    .await;
    check(500, 201, |n| {
        spec(
            "texts",
            lines(n, |_| "    # a comment".to_owned()) + "    k: v\n",
        )
    })
    .await;
    check(500, 422, |n| {
        spec(
            "text",
            "    |\n".to_owned() + &lines(n, |_| "      a line".to_owned()),
        )
    })
    .await;
    check(500, 422, |n| {
        create_yaml(&("  text: a\n".to_owned() + &lines(n, |_| "    folded".to_owned())))
    })
    .await;
    check(5000, 422, |n| {
        create_yaml(&format!("  text: \"{}\"\n", "\\n".repeat(n)))
    })
    .await;
    check(5000, 422, |n| {
        create_yaml(&format!("  text: '{}'\n", "''".repeat(n)))
    })
    .await;
    let anchors = |i| format!("    k{i}: &a{i} v");
    check(250, 201, |n| spec("texts", lines(n, anchors))).await;
    let aliases = |i| format!("    j{i}: *a{i}");
    check(250, 201, |n| {
        spec("texts", lines(n, anchors) + &lines(n, aliases))
    })
    .await;
    check(250, 201, |n| {
        spec(
            "texts",
            "    k: &a v\n".to_owned() + &lines(n, |i| format!("    k{i}: *a")),
        )
    })
    .await;
    let merged = |n| {
        format!(
            "    a: &a\n{}    b:\n      <<: *a\n      own: 1\n",
            lines(n, |i| format!("      k{i}: {i}"))
        )
    };
    check(250, 201, |n| spec("free", merged(n))).await;
    check(500, 201, |n| {
        create_yaml("  text: a\n").with_more(&"---\nx: 1\n".repeat(n))
    })
    .await;
    check(500, 400, |n| create_yaml(&lines(n, |_| "  - }".to_owned()))).await;
}

impl Request {
    fn with_more(mut self, text: &str) -> Self {
        self.body = [&self.body, text.as_bytes()].concat().into();
        self
    }
}

#[tokio::test]
async fn what_stands_beside_a_body_costs_what_it_is_long() {
    let get = |query: String| Request::new("GET", &format!("{PILES}?{query}"), JSON, "");
    check(500, 200, |n| get("pretty=1&".repeat(n))).await;
    check(500, 200, |n| {
        get(lines(n, |i| format!("k{i}=%20&")).replace('\n', ""))
    })
    .await;
    let accept = |n, one: &str| {
        let mut request = get(String::new());
        request
            .headers
            .push(("accept", [one].repeat(n).join(",") + ",*/*"));
        request
    };
    check(500, 200, |n| accept(n, "text/html;q=0.5")).await;
    check(500, 200, |n| {
        accept(n, "application/json;as=Table;v=v2;g=meta.k8s.io")
    })
    .await;
    let params = |n: usize| format!("text/html{}", ";a=b".repeat(n));
    check(500, 200, |n| accept(1, &params(n))).await;
    let options = |n| format!("{{\"dryRun\":[{}]}}", list(n, |_| "\"All\"".to_owned()));
    check(2500, 404, |n| {
        Request::new("DELETE", PILE, JSON, options(n))
    })
    .await;
    let finalizers = |n: usize| {
        let spec: Vec<u8> = (0..n)
            .flat_map(|i| field(1, format!("x/{i}").as_bytes()))
            .collect();
        let raw = [field(1, &field(1, b"a")), field(2, &spec)].concat();
        let kind = [field(1, b"v1"), field(2, b"Namespace")].concat();
        [b"k8s\0".to_vec(), field(1, &kind), field(2, &raw)].concat()
    };
    let protobuf = "application/vnd.kubernetes.protobuf";
    check(1250, 201, |n| {
        Request::new("POST", "/api/v1/namespaces", protobuf, finalizers(n))
    })
    .await;
}

/// A field of a protobuf message with a length prefix.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut len = bytes.len();
    while len >= 0x80 {
        out.push((len & 0x7f) as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend_from_slice(bytes);
    out
}
