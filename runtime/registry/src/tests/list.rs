//! get and list.

use base64::Engine as _;

use super::*;

/// Five widgets a to e; every second one is red.
async fn five() -> Fixture {
    five_in(fixture().await).await
}

async fn five_in(f: Fixture) -> Fixture {
    for (i, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        let color = if i % 2 == 0 { "red" } else { "blue" };
        let input = json!({"metadata": {"name": name, "labels": {"color": color}}, "spec": {"color": color}});
        f.create(input).await.unwrap();
    }
    f
}

fn page(limit: u64, token: &str) -> ListOptions {
    ListOptions {
        limit,
        continue_token: token.to_owned(),
        ..ListOptions::default()
    }
}

fn at_version(
    version: impl ToString,
    version_match: Option<VersionMatch>,
    limit: u64,
) -> ListOptions {
    ListOptions {
        resource_version: version.to_string(),
        version_match,
        limit,
        ..ListOptions::default()
    }
}

#[tokio::test]
async fn get_waits_for_no_future() {
    let f = five().await;
    let get = async |version: &str| {
        f.widgets
            .reads()
            .get(
                &f.ctx,
                NS,
                "a",
                &GetOptions {
                    resource_version: version.to_owned(),
                },
            )
            .await
    };
    get("").await.unwrap();
    get("0").await.unwrap();
    get("1").await.unwrap();
    let current = f.revision().await;
    let error = get("9007199254740991").await.unwrap_err();
    let text = format!("Timeout: Too large resource version: 9007199254740991, current: {current}");
    assert_eq!(shown(&error), (Some("Timeout"), text.as_str()));
    let details = error.details.unwrap();
    assert_eq!(
        (
            details.causes[0].reason.as_str(),
            details.retry_after_seconds
        ),
        ("ResourceVersionTooLarge", 1)
    );
    let text =
        "resourceVersion: Invalid value: \"zz\": strconv.ParseUint: parsing \"zz\": invalid syntax";
    assert_eq!(shown(&get("zz").await.unwrap_err()), (None, text));
}

#[tokio::test]
async fn a_name_that_cannot_be_a_key_is_refused() {
    let f = fixture().await;
    let error = f.get("..").await.unwrap_err();
    assert_eq!(
        shown(&error),
        (
            Some("BadRequest"),
            "Name parameter invalid: \"..\": may not be '..'"
        )
    );
    assert_eq!(
        f.get("A_b").await.unwrap_err().reason,
        Some(StatusReason::NotFound)
    );
}

#[tokio::test]
async fn a_list_shows_one_state_in_key_order() {
    let f = five().await;
    let listed = f.list(&ListOptions::default()).await.unwrap();
    assert_eq!(names(&listed), ["a", "b", "c", "d", "e"]);
    assert_eq!(listed.resource_version, f.revision().await.to_string());
    assert_eq!(
        (listed.continue_token.as_str(), listed.remaining_item_count),
        ("", None)
    );
    assert_eq!(items(&listed)[0], f.get("a").await.unwrap());
}

#[tokio::test]
async fn a_namespace_does_not_show_another_that_begins_alike() {
    let f = five().await;
    let all = f
        .widgets
        .reads()
        .list(&f.ctx, None, &ListOptions::default())
        .await
        .unwrap();
    assert_eq!(items(&all).len(), 5);
    let none = f
        .widgets
        .reads()
        .list(&f.ctx, Some("defaul"), &ListOptions::default())
        .await
        .unwrap();
    assert!(items(&none).is_empty());
}

#[tokio::test]
async fn pages_show_the_state_of_the_first() {
    let f = five().await;
    let first = f.list(&page(2, "")).await.unwrap();
    assert_eq!(
        (names(&first), first.remaining_item_count),
        (["a", "b"].map(String::from).to_vec(), Some(3))
    );
    f.delete("c").await.unwrap();
    let second = f.list(&page(2, &first.continue_token)).await.unwrap();
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second.resource_version, first.resource_version);
    let third = f.list(&page(1, &second.continue_token)).await.unwrap();
    assert_eq!(
        (
            names(&third),
            third.continue_token.as_str(),
            third.remaining_item_count
        ),
        (vec!["e".to_owned()], "", None)
    );
}

#[tokio::test]
async fn every_page_says_how_many_are_left() {
    let f = five().await;
    let mut token = String::new();
    for left in [Some(4), Some(3), Some(2), Some(1), None] {
        let listed = f.list(&page(1, &token)).await.unwrap();
        assert_eq!(listed.remaining_item_count, left);
        // Repeated, also with pages of another size and interleaved with lists of other prefixes.
        let all = f
            .widgets
            .reads()
            .list(&f.ctx, None, &page(1, ""))
            .await
            .unwrap();
        assert_eq!(all.remaining_item_count, Some(4));
        let two = f.list(&page(2, &token)).await.unwrap();
        assert_eq!(
            two.remaining_item_count,
            left.map(|left| left - 1).filter(|left| *left > 0)
        );
        token = listed.continue_token;
    }
}

#[tokio::test]
async fn a_page_before_a_damaged_object_is_given() {
    let f = five().await;
    f.store.create(&key("bb"), "{".into(), None).await.unwrap();
    for endpoint in [&f.widgets, &f.alpha] {
        let list = async |options: ListOptions| endpoint.reads().list(&f.ctx, NS, &options).await;
        let first = list(page(2, "")).await.unwrap();
        assert_eq!(names(&first), ["a", "b"]);
        for options in [ListOptions::default(), page(3, ""), labels("color=red")] {
            let error = list(options).await.unwrap_err();
            assert_eq!(error.reason, Some(StatusReason::InternalError));
        }
        assert_eq!(
            names(&list(fields("metadata.name=c")).await.unwrap()),
            ["c"]
        );
    }
    f.delete("bb").await.unwrap_err();
    let (entry, _) = f.store.get(&key("bb")).await.unwrap();
    let revision = entry.unwrap().revision;
    f.store.delete_if(&key("bb"), revision).await.unwrap();
    let whole = f.list(&ListOptions::default()).await.unwrap();
    assert_eq!(names(&whole).len(), 5);
}

#[tokio::test]
async fn selectors_fill_pages() {
    let f = five().await;
    let first = f
        .list(&ListOptions {
            limit: 2,
            ..labels("color=red")
        })
        .await
        .unwrap();
    assert_eq!(
        (names(&first), first.remaining_item_count),
        (["a", "c"].map(String::from).to_vec(), None)
    );
    let rest = f
        .list(&ListOptions {
            limit: 2,
            continue_token: first.continue_token,
            ..labels("color=red")
        })
        .await
        .unwrap();
    assert_eq!(
        (names(&rest), rest.continue_token.as_str()),
        (vec!["e".to_owned()], "")
    );
    let rare = f
        .list(&ListOptions {
            limit: 1,
            ..fields("metadata.name!=a,spec.color=red")
        })
        .await
        .unwrap();
    assert_eq!(names(&rare), ["c"]);
}

#[tokio::test]
async fn an_old_token_offers_an_inconsistent_rest() {
    let f = five_in(forgetful().await).await;
    let first = f.list(&page(2, "")).await.unwrap();
    f.delete("c").await.unwrap();
    f.delete("b").await.unwrap();
    f.cached().await;
    f.store
        .compact(apiloom_storage::Revision(f.revision().await))
        .await
        .unwrap();
    let error = f.list(&page(2, &first.continue_token)).await.unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::Expired));
    assert!(
        error
            .message
            .starts_with("The provided continue parameter is too old"),
        "{}",
        error.message
    );
    let rest = f
        .list(&page(2, &error.continue_token.unwrap()))
        .await
        .unwrap();
    assert_eq!(names(&rest), ["d", "e"]);
}

#[tokio::test]
async fn a_broken_token_is_refused() {
    let f = five().await;
    let error = f.list(&page(2, "%%")).await.unwrap_err();
    let text =
        "invalid continue token: continue key is not valid: illegal base64 data at input byte 0";
    assert_eq!(shown(&error), (Some("BadRequest"), text));
    let token = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .encode(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"../../x"}"#);
    assert_eq!(
        f.list(&page(2, &token)).await.unwrap_err().reason,
        Some(StatusReason::BadRequest)
    );
    let at_one = |token: &str| ListOptions {
        resource_version: "1".to_owned(),
        ..page(2, token)
    };
    let text =
        "invalid continue token: continue key is not valid: illegal base64 data at input byte 0";
    assert_eq!(
        shown(&f.list(&at_one("x")).await.unwrap_err()),
        (Some("BadRequest"), text)
    );
    let both = at_one(
        &base64::engine::general_purpose::URL_SAFE_NO_PAD
            .encode(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"x"}"#),
    );
    let text = "specifying resource version is not allowed when using continue";
    assert_eq!(
        shown(&f.list(&both).await.unwrap_err()),
        (Some("BadRequest"), text)
    );
}

#[tokio::test]
async fn an_exact_state_is_shown() {
    let f = five().await;
    let then = f.revision().await;
    f.delete("a").await.unwrap();
    let exact = f
        .list(&at_version(then, Some(VersionMatch::Exact), 0))
        .await
        .unwrap();
    assert_eq!(
        (items(&exact).len(), exact.resource_version),
        (5, then.to_string())
    );
    let legacy = f.list(&at_version(then, None, 2)).await.unwrap();
    assert_eq!(names(&legacy), ["a", "b"]);
    let newer = f.list(&at_version(then, None, 0)).await.unwrap();
    assert_eq!(items(&newer).len(), 4);
    let newer = f
        .list(&at_version(then, Some(VersionMatch::NotOlderThan), 2))
        .await
        .unwrap();
    assert_eq!(names(&newer), ["b", "c"]);
}

#[tokio::test]
async fn any_state_ignores_the_limit() {
    let f = five().await;
    f.cached().await;
    let listed = f.list(&at_version("0", None, 2)).await.unwrap();
    assert_eq!(
        (items(&listed).len(), listed.continue_token.as_str()),
        (5, "")
    );
}

#[tokio::test(start_paused = true)]
async fn states_that_are_not_there_are_refused() {
    let f = five_in(forgetful().await).await;
    for version_match in [
        None,
        Some(VersionMatch::Exact),
        Some(VersionMatch::NotOlderThan),
    ] {
        let error = f
            .list(&at_version(FUTURE, version_match, 0))
            .await
            .unwrap_err();
        assert_eq!(
            error.reason,
            Some(StatusReason::Timeout),
            "{version_match:?}"
        );
    }
    let then = f.revision().await;
    f.delete("a").await.unwrap();
    f.delete("b").await.unwrap();
    f.cached().await;
    f.store
        .compact(apiloom_storage::Revision(f.revision().await))
        .await
        .unwrap();
    let error = f
        .list(&at_version(then, Some(VersionMatch::Exact), 0))
        .await
        .unwrap_err();
    assert_eq!(
        shown(&error),
        (
            Some("Expired"),
            "The resourceVersion for the provided list is too old."
        )
    );
    let error = f.list(&at_version("zz", None, 0)).await.unwrap_err();
    let text = "invalid resource version: resourceVersion: Invalid value: \"zz\": strconv.ParseUint: parsing \"zz\": invalid syntax";
    assert_eq!(shown(&error), (Some("BadRequest"), text));
}

#[tokio::test]
async fn fields_are_selected_by_what_the_kind_declares() {
    let f = five().await;
    assert_eq!(
        names(&f.list(&fields("spec.color=red")).await.unwrap()),
        ["a", "c", "e"]
    );
    assert_eq!(
        names(&f.list(&fields("metadata.name=b")).await.unwrap()),
        ["b"]
    );
    assert_eq!(
        names(
            &f.list(&fields("metadata.name=b,spec.color=red"))
                .await
                .unwrap()
        ),
        Vec::<&str>::new()
    );
    assert_eq!(
        names(&f.list(&fields("metadata.namespace=other")).await.unwrap()),
        Vec::<&str>::new()
    );
    let everywhere = f
        .widgets
        .reads()
        .list(&f.ctx, None, &fields("metadata.name=b"))
        .await
        .unwrap();
    assert_eq!(names(&everywhere), ["b"]);
    for (endpoint, text) in [
        (&f.widgets, "spec.zip"),
        (&f.widgets, "spec.colour"),
        (&f.gadgets, "metadata.namespace"),
    ] {
        let error = endpoint
            .reads()
            .list(&f.ctx, NS, &fields(&format!("{text}=x")))
            .await
            .unwrap_err();
        assert_eq!(
            shown(&error),
            (
                Some("BadRequest"),
                format!("field label not supported: {text}").as_str()
            )
        );
    }
}
