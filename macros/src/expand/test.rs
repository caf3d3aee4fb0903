//! Expands `#[apiloom::test]`: a test that starts a server and calls the function with it.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned as _;
use syn::{Error, FnArg, Ident, ItemFn, Path, Token, Type};

/// The form that a test has.
const FORM: &str = "async fn name(server: TestServer, control: Control)";

/// The arguments of the attribute.
#[derive(Default)]
struct Settings {
    install: Vec<Path>,
    is_paused: bool,
}

impl Parse for Settings {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut settings = Self::default();
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            match key.to_string().as_str() {
                "install" => {
                    let wrong = |span| {
                        let text =
                            "`install` takes a path: write `install = wardle::generated::install`";
                        Error::new(span, text)
                    };
                    let equals: syn::Result<Token![=]> = input.parse();
                    equals.map_err(|_| wrong(key.span()))?;
                    let span = input.span();
                    settings
                        .install
                        .push(input.parse().map_err(|_| wrong(span))?);
                }
                "paused" => settings.is_paused = true,
                other => {
                    let text = format!(
                        "`{other}` is no key of #[apiloom::test]; it has `install = PATH` and `paused`"
                    );
                    return Err(Error::new(key.span(), text));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(settings)
    }
}

/// Emits the test, or the errors of its signature.
pub(crate) fn test(args: TokenStream, item: TokenStream) -> TokenStream {
    let settings = syn::parse2(args);
    let function: ItemFn = match syn::parse2(item) {
        Ok(function) => function,
        Err(error) => {
            let text = format!("#[apiloom::test] belongs on a function: `{FORM} {{ .. }}`");
            return Error::new(error.span(), text).into_compile_error();
        }
    };
    let settings: Settings = match (settings, check(&function)) {
        (Ok(settings), Ok(())) => settings,
        (settings, checked) => {
            let mut errors = [settings.err(), checked.err()].into_iter().flatten();
            let first = errors.next();
            let all = first.map(|mut first| {
                first.extend(errors);
                first.into_compile_error()
            });
            return quote!(#all);
        }
    };
    expand(&settings, function)
}

/// Checks the signature; reports all that is wrong with it.
fn check(function: &ItemFn) -> syn::Result<()> {
    let signature = &function.sig;
    let mut errors = Vec::new();
    let mut wrong = |tokens: &dyn quote::ToTokens, text: &str| {
        errors.push(Error::new_spanned(tokens.to_token_stream(), text));
    };
    if signature.asyncness.is_none() {
        let text = format!("a test of #[apiloom::test] is asynchronous: write `{FORM}`");
        wrong(&signature.fn_token, &text);
    }
    if !signature.generics.params.is_empty() {
        wrong(
            &signature.generics,
            "a test has no generic parameters: the test runner cannot choose them",
        );
    }
    let text = "the first parameter of a test is its server or its clients, the second one their control: write \
                `server: TestServer, control: Control`";
    match signature.inputs.len() {
        0 => wrong(&signature.ident, text),
        1 | 2 => {}
        _ => {
            for extra in signature.inputs.iter().skip(2) {
                wrong(&extra, text);
            }
        }
    }
    for input in &signature.inputs {
        if let FnArg::Receiver(receiver) = input {
            wrong(receiver, "a test is no method: it has no `self`");
        }
    }
    for attribute in &function.attrs {
        if attribute
            .path()
            .segments
            .last()
            .is_some_and(|last| last.ident == "test")
        {
            wrong(
                attribute,
                "#[apiloom::test] makes the test by itself: remove this attribute",
            );
        }
    }
    let mut errors = errors.into_iter();
    match errors.next() {
        None => Ok(()),
        Some(mut first) => {
            first.extend(errors);
            Err(first)
        }
    }
}

fn expand(settings: &Settings, function: ItemFn) -> TokenStream {
    let ItemFn {
        attrs,
        vis,
        mut sig,
        block,
        ..
    } = function;
    let name = sig.ident.clone();
    let output = &sig.output;
    let types: Vec<&Type> = sig
        .inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Typed(typed) => Some(&*typed.ty),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let fixture = types[0];
    let arguments = if types.len() == 2 {
        quote!(fixture, control)
    } else {
        quote!(fixture)
    };
    let install = &settings.install;
    // The feature `paused-time` has the first one, as an error of the compiler says without it.
    let run = if settings.is_paused {
        quote!(run_paused_test)
    } else {
        quote!(run_test)
    };
    // An error of the type is shown at the parameter.
    let builder = quote_spanned! {fixture.span()=>
        <#fixture as ::apiloom::testing::Fixture>::builder()
    };
    let outer = quote!(#(#attrs)* #[::core::prelude::v1::test] #vis fn #name() #output);
    sig.ident = Ident::new("test", name.span());
    quote! {
        #outer {
            #sig #block
            ::apiloom::codegen::#run(async {
                let builder = #builder #(.install(#install))*;
                #[allow(unused_variables, reason = "the control keeps the server running")]
                let (fixture, control) = ::apiloom::codegen::unwrap_built(builder.build().await);
                test(#arguments).await
            })
        }
    }
}
