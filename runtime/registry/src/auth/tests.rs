//! Tests of credentials and users, and of the order of authenticators and authorizers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiloom_meta::{ApiError, StatusReason};
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;

use super::credentials::BEARER_PROTOCOL;
use super::*;

/// The authenticators of a server with this token.
fn admin(token: &str) -> Authenticators {
    let mut authenticators = Authenticators::default();
    authenticators.push(StaticToken::of_admin(token));
    authenticators
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

async fn authenticate(
    authenticators: &Authenticators,
    headers: &mut HeaderMap,
) -> Result<Authenticated, ApiError> {
    let connection = Connection::in_process();
    authenticators
        .authenticate(&connection, "/", headers, soon())
        .await
}

fn authorization(value: &str) -> HeaderMap {
    let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
    HeaderMap::from_iter([(AUTHORIZATION, value)])
}

#[tokio::test]
async fn a_wrong_token_is_never_anonymous() {
    let user = async |header: Option<&str>| {
        let mut headers = header.map(authorization).unwrap_or_default();
        let user = authenticate(&admin("right"), &mut headers).await?;
        assert!(headers.is_empty(), "credentials go no further");
        Ok::<_, ApiError>(user.user().name.clone())
    };
    for right in [
        "Bearer right",
        "bearer right",
        "BEARER   right ",
        "bearer \tright",
    ] {
        assert_eq!(
            user(Some(right)).await.unwrap(),
            "kubernetes-admin",
            "{right}"
        );
    }
    for wrong in [
        "Bearer wrong",
        "Bearer righ",
        "Bearer rightt",
        "Bearer schl\u{fc}ssel",
        "bearer \u{fc}",
        "Bearer \u{fffd} right",
    ] {
        let error = user(Some(wrong)).await.unwrap_err();
        assert_eq!(error.reason, Some(StatusReason::Unauthorized), "{wrong}");
    }
    for none in [
        None,
        Some("Bearer "),
        Some("Bearer"),
        Some("Basic abc"),
        Some("Basic \u{fc}"),
    ] {
        assert_eq!(user(none).await.unwrap(), "system:anonymous");
    }
}

#[tokio::test]
async fn a_websocket_brings_its_token_as_a_protocol() {
    // The tokens `right` and `wrong` in base64url.
    let (right, wrong) = ("cmlnaHQ", "d3Jvbmc");
    let user = async |upgrade: &'static str, protocols: &[String]| {
        let mut headers = HeaderMap::new();
        headers.insert(UPGRADE, HeaderValue::from_static(upgrade));
        for protocols in protocols {
            headers.append(SEC_WEBSOCKET_PROTOCOL, protocols.parse().unwrap());
        }
        let user = authenticate(&admin("right"), &mut headers).await;
        let left = headers.get(SEC_WEBSOCKET_PROTOCOL);
        let left = left.map(|value| value.to_str().unwrap().to_owned());
        user.map(|user| (user.user().name.clone(), left.unwrap_or_default()))
            .map_err(|error| error.reason)
    };
    let bearer = |token: &str| format!("{BEARER_PROTOCOL}{token}");
    let admin = |left: &str| Ok(("kubernetes-admin".to_owned(), left.to_owned()));
    let anonymous = |left: &str| Ok(("system:anonymous".to_owned(), left.to_owned()));
    let unauthorized = Err(Some(StatusReason::Unauthorized));
    let with = |token: &str| format!("{}, a , b", bearer(token));
    assert_eq!(user("WebSocket", &[with(right)]).await, admin("a,b"));
    assert_eq!(
        user("websocket", &["a".to_owned(), bearer(right)]).await,
        admin("a")
    );
    assert_eq!(
        user("websocket", &["a,b".to_owned()]).await,
        anonymous("a,b")
    );
    assert_eq!(user("websocket", &[]).await, anonymous(""));
    // The token is not used, and is not shown to other code either.
    assert_eq!(user("h2c", &[with(right)]).await, anonymous("a,b"));
    assert_eq!(user("h2c", &[bearer(wrong)]).await, anonymous(""));
    for protocols in [
        with(wrong),
        with("not base64!"),
        with("_w"),
        bearer(right),
        format!("{},{}", with(right), bearer(right)),
    ] {
        assert_eq!(user("websocket", &[protocols]).await, unauthorized);
    }
}

/// Returns the same user for every request, and counts the calls.
struct Fixed {
    name: Option<&'static str>,
    error: Option<&'static str>,
    is_later: bool,
    asked: Arc<AtomicUsize>,
}

impl Fixed {
    fn new(name: Option<&'static str>, error: Option<&'static str>) -> Self {
        Self {
            name,
            error,
            is_later: false,
            asked: Arc::default(),
        }
    }
}

impl Authenticator for Fixed {
    fn authenticate<'a>(&'a self, _: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let user = |name: &str| {
            Arc::new(UserInfo {
                name: name.to_owned(),
                ..UserInfo::default()
            })
        };
        let answer = match self.error {
            Some(error) => Err(error.into()),
            None => Ok(self.name.map(user)),
        };
        if self.is_later {
            return Answer::later(async move {
                tokio::task::yield_now().await;
                answer
            });
        }
        Answer::Now(answer)
    }
}

/// Never returns a result.
struct Silent;

impl Authenticator for Silent {
    fn authenticate<'a>(&'a self, _: &'a Credentials<'a>) -> Answer<'a, Authentication> {
        Answer::later(std::future::pending())
    }
}

impl Authorizer for Silent {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> Answer<'a, Authorization> {
        Answer::later(std::future::pending())
    }
}

#[tokio::test]
async fn the_first_authenticator_that_knows_the_user_decides() {
    let check = async |answers: &[(Option<&'static str>, Option<&'static str>)],
                       token: bool,
                       expected: Result<&str, StatusReason>,
                       asked: &[usize]| {
        for is_later in [false, true] {
            let mut authenticators = Authenticators::default();
            let mut counts = Vec::new();
            for (name, error) in answers {
                let fixed = Fixed {
                    is_later,
                    ..Fixed::new(*name, *error)
                };
                counts.push(Arc::clone(&fixed.asked));
                authenticators.push(fixed);
            }
            let mut headers = if token {
                authorization("Bearer x")
            } else {
                HeaderMap::new()
            };
            let user = authenticate(&authenticators, &mut headers).await;
            let user = user.as_ref().map(|user| user.user().name.as_str());
            assert_eq!(
                user.map_err(|error| error.reason.unwrap()),
                expected,
                "{answers:?}"
            );
            let counts: Vec<usize> = counts.iter().map(|n| n.load(Ordering::Relaxed)).collect();
            assert_eq!(counts, asked, "{answers:?}");
        }
    };
    let (none, anna, bert) = ((None, None), (Some("anna"), None), (Some("bert"), None));
    let error = (None, Some("expired"));
    let unauthorized = Err(StatusReason::Unauthorized);
    check(&[none, anna, bert], true, Ok("anna"), &[1, 1, 0]).await;
    check(&[bert, anna], false, Ok("bert"), &[1, 0]).await;
    check(&[error, anna], true, Ok("anna"), &[1, 1]).await;
    check(&[none, error, none], false, unauthorized, &[1, 1, 1]).await;
    check(&[none], true, unauthorized, &[1]).await;
    check(&[], true, unauthorized, &[]).await;
    check(&[none], false, Ok("system:anonymous"), &[1]).await;
}

#[tokio::test(start_paused = true)]
async fn an_authenticator_that_never_answers_ends_at_the_deadline() {
    let mut authenticators = Authenticators::default();
    authenticators.push(Silent);
    authenticators.push(Fixed::new(None, None));
    let begun = Instant::now();
    let user = authenticate(&authenticators, &mut HeaderMap::new()).await;
    assert_eq!(user.unwrap_err().reason, Some(StatusReason::Unauthorized));
    assert_eq!(begun.elapsed().as_secs(), 60);
    // A later authenticator that knows the user is called too.
    authenticators.push(Fixed::new(Some("anna"), None));
    let user = authenticate(&authenticators, &mut HeaderMap::new()).await;
    assert_eq!(user.unwrap().user().name, "anna");
}

#[tokio::test]
async fn an_authenticated_user_is_in_the_group_of_all_that_are() {
    let groups = async |name: Option<&'static str>| {
        let mut authenticators = Authenticators::default();
        authenticators.push(Fixed::new(name, None));
        let user = authenticate(&authenticators, &mut HeaderMap::new()).await;
        user.unwrap().user().groups.clone()
    };
    assert_eq!(groups(Some("anna")).await, ["system:authenticated"]);
    assert_eq!(groups(None).await, ["system:unauthenticated"]);
    let user = authenticate(&admin("right"), &mut authorization("Bearer right")).await;
    let groups = user.unwrap().user().groups.clone();
    assert_eq!(groups, ["system:masters", "system:authenticated"]);
}

fn user(groups: &[&str]) -> UserInfo {
    UserInfo {
        name: "anna <a>".to_owned(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..UserInfo::default()
    }
}

/// Returns the same decision for every request.
struct Always(Result<Decision, &'static str>);

impl Authorizer for Always {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> Answer<'a, Authorization> {
        let decision = self.0.clone().map_err(Into::into);
        Answer::later(async {
            tokio::task::yield_now().await;
            decision
        })
    }
}

fn list_of(decisions: &[Result<Decision, &'static str>]) -> Authorizers {
    let mut authorizers = Authorizers::default();
    for decision in decisions {
        authorizers.push(Always(decision.clone()));
    }
    authorizers
}

#[tokio::test]
async fn the_first_authorizer_that_decides_is_obeyed() {
    let check = async |decisions: &[Result<Decision, &'static str>], expected: Result<(), &str>| {
        let user = user(&[]);
        let attributes = Attributes::of_path(&user, "get", "/x");
        let decided = list_of(decisions).authorize(&attributes, soon()).await;
        let decided = decided.map_err(|refusal| match refusal {
            Refusal::Forbidden(error) => {
                assert_eq!(error.reason, Some(StatusReason::Forbidden));
                error.message
            }
            Refusal::Failed(error) => format!("failed: {error}"),
            Refusal::OutOfTime => "out of time".to_owned(),
        });
        assert_eq!(decided, expected.map_err(str::to_owned), "{decisions:?}");
    };
    let deny = || Ok(Decision::deny("closed on Sundays"));
    let (allow, none) = (|| Ok(Decision::allow()), || Ok(Decision::no_opinion()));
    let because = |why: &str| Ok(Decision::NoOpinion(why.into()));
    let forbidden = r#"forbidden: User "anna &lt;a&gt;" cannot get path "/x""#;
    let denied = format!("{forbidden}: closed on Sundays");
    check(&[], Err(forbidden)).await;
    check(&[none(), none()], Err(forbidden)).await;
    check(&[none(), allow(), deny()], Ok(())).await;
    check(&[none(), deny(), allow()], Err(&denied)).await;
    check(&[Err("a"), allow()], Ok(())).await;
    check(&[Err("a"), deny()], Err(&denied)).await;
    check(&[Err("a"), none(), Err("a")], Err("failed: a")).await;
    check(&[Err("a"), none(), Err("b")], Err("failed: [a, b]")).await;
    let unknown = format!("{forbidden}: no such role\nno such group");
    let reasons = [because("no such role"), none(), because("no such group")];
    check(&reasons, Err(&unknown)).await;
    check(&[because("no such role"), deny()], Err(&denied)).await;
}

#[tokio::test(start_paused = true)]
async fn an_authorizer_that_never_answers_ends_at_the_deadline() {
    let mut authorizers = Authorizers::default();
    authorizers.push(Silent);
    authorizers.push(Always(Ok(Decision::allow())));
    let user = user(&[]);
    let attributes = Attributes::of_path(&user, "get", "/x");
    let deadline = Instant::now() + Duration::from_secs(5);
    let refusal = authorizers.authorize(&attributes, deadline).await;
    assert!(
        matches!(refusal, Err(Refusal::OutOfTime)),
        "{:?}",
        refusal.err()
    );
    assert_eq!(Instant::now(), deadline);
}

#[tokio::test]
async fn everybody_reads_health_and_version_and_nothing_else() {
    let decision = async |verb: &str, path: &str, groups: &[&str]| {
        let user = user(groups);
        let mut authorizers = Authorizers::default();
        authorizers.push(PrivilegedGroup);
        authorizers.push(PublicInfo);
        let attributes = Attributes::of_path(&user, verb, path);
        authorizers.authorize(&attributes, soon()).await.is_ok()
    };
    for path in [
        "/healthz",
        "/livez/ping",
        "/readyz",
        "/version",
        "/version/",
    ] {
        assert!(decision("get", path, &[]).await, "{path}");
        assert!(!decision("post", path, &[]).await, "{path}");
    }
    for path in ["/", "/healthzz", "/metrics", "/api", "/versions"] {
        assert!(!decision("get", path, &["system:authenticated"]).await);
        assert!(decision("post", path, &["system:masters"]).await, "{path}");
    }
}
