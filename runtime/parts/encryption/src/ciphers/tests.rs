//! The bytes of each cipher: those that kube-apiserver's own code has made are read, and changed ones are refused.

#![allow(clippy::unwrap_used, reason = "tests")]

use apiloom_meta::bytes::decode;

use super::*;

const PATH: &str = "/registry/secrets/default/s";
const PLAIN: &[u8] = br#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"}}"#;

/// The key of the vectors with this length.
fn key(len: u8) -> Vec<u8> {
    (len..2 * len).collect()
}

/// Checks that a value of kube-apiserver is read, and that what is written is read and differs each time.
fn check(cipher: &dyn KeyCipher, plain: &[u8], vector: &str) {
    assert_eq!(cipher.open(PATH, &decode(vector).unwrap()).unwrap(), plain);
    let written = [(); 2].map(|()| {
        let mut sealed = b"before".to_vec();
        cipher.seal(PATH, plain, &mut sealed).unwrap();
        sealed.strip_prefix(b"before").unwrap().to_vec()
    });
    assert_ne!(written[0], written[1], "nonces are random");
    for sealed in written {
        assert_eq!(sealed.len(), decode(vector).unwrap().len());
        assert_eq!(cipher.open(PATH, &sealed).unwrap(), plain);
    }
}

/// The values with one bit flipped, for each bit.
fn flipped(sealed: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..sealed.len() * 8).map(|bit| {
        let mut flipped = sealed.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        flipped
    })
}

#[test]
fn aes_gcm_reads_the_values_of_kube_apiserver() {
    let vectors = [
        (
            16,
            "6/hlESaco0AgLAAEZgab2V6l9MeMwyj7NKuSLKti8bQBMyymIvGqrVvOrgoLEU4J6/J5Yk5lyLi/CQXoIUyRiRidtGUf/nLreY10Y12ItBdlZBmUVtyW",
        ),
        (
            24,
            "RsbZW8pL0mNcaPOh/d5S3sqRYqT5+mmoFiyU5PmpzOXb/GtDxjekAE9oi1mR8InTY740UfJYQLUeFH08oHMqQQefXs02Xl9CA5mRvU3BqfnYs15bCWWY",
        ),
        (
            32,
            "w4Wpn8+iXTyXHoLPMnE8W7fOMvEftqLIswiXnVcyOs6mUQWEbxB7TXjl4LrrKXIN10x8i+F8l79gXJ0h5Wwo/zMgEPtqbsCw/1u8LvxzMH3lWMS5raU5",
        ),
    ];
    for (len, vector) in vectors {
        check(&AesGcm::new(&key(len)).unwrap(), PLAIN, vector);
    }
}

#[test]
fn aes_cbc_reads_the_values_of_kube_apiserver() {
    let vectors = [
        (
            16,
            PLAIN,
            "soQhbQ1m2A2HkSO4LLkqHdvvZplwGFnZLrOWlOClEyIa44kuclm8XoD86GvBkD1bPk70KMNo19BuqxAnKkzaQUxws2Q08jPTv37bxTPBxEo=",
        ),
        (
            16,
            &PLAIN[..48],
            "yWy7yx9LCkL7ZYRPX4Acmwr4r7nZrT9MQ5SjlyOGwsF84V4W5xqZRGvikwuTC+kaKbA+HUE5KWzpJ+G7LwlXS1d7x493Sm/VYPzVgc0JGzE=",
        ),
        (16, b"", "oEEFUFQ4qhDbKVNmWZFPasXXy8dWhMoBgIVh4oCU22c="),
        (
            24,
            PLAIN,
            "3+H9GxSUn/Kz19tulG549TgaGm923Psf8NKOEQTCJiFPVZkBXbm38vKBvtJumvbP+Kr/9PSce3LuVrsS+oLepvDe9K1HAOfuUPdaVmqLbwo=",
        ),
        (
            24,
            &PLAIN[..48],
            "RA6OggPXbU+g3ywZmq5r8yusThf5AnjPl95nw8hz90gR4XQqInisR16dtpDW/0ocdarnmKY5CRsTsptZCfBQvnMHV2D5F1fYqm0P94ejaZU=",
        ),
        (24, b"", "9ZTnBK+ZJ7jUb00QLSEOdVfDS0e9GppnGjhk6zT+NuU="),
        (
            32,
            PLAIN,
            "Mrh5YpYO5sT/vj2humgBoppEMHJEcEfKSWmGWyPaQrl52hncNZBuFEovn0hWziwgOxeRLrE9n45wOEUIUw15u0MDdZGgabKPJlabNwWuRYc=",
        ),
        (
            32,
            &PLAIN[..48],
            "JaQccIxs78yCzbaXNZFnDoMZflzu/pf33EEhEh/7lB1LdwCSnDFx4Qk7zsZ8dlYO/s53JrGaaUTPXyj3dyLvr098GT9SdYvTcCzKhUkUwhs=",
        ),
        (32, b"", "kcLX7Dwqf+aCOhIU2fh/+JZWLM/maPaRf+/tADeHWaQ="),
    ];
    for (len, plain, vector) in vectors {
        check(&AesCbc::new(&key(len)).unwrap(), plain, vector);
    }
}

#[test]
fn a_secretbox_reads_the_values_of_kube_apiserver() {
    let vector = "maRPG39YSK0tMP6+j5EIUxFPCQb7nXvui8XztrWBwe2DImYv2siy7ZditQ8eLPPXx4ekcTb6ZU5si7lEPVF++1sXh5aSJDyhMZgjv7w28Vpmms0liGMZ7CvGp4mxXYHa9zXz";
    check(&SecretBox::new(&key(32)).unwrap(), PLAIN, vector);
}

#[test]
fn keys_of_other_lengths_are_refused() {
    for len in [0, 1, 15, 17, 23, 25, 31, 33, 64] {
        assert!(AesGcm::new(&key(len)).is_none(), "{len}");
        assert!(AesCbc::new(&key(len)).is_none(), "{len}");
        assert!(SecretBox::new(&key(len)).is_none(), "{len}");
    }
    assert!(SecretBox::new(&key(16)).is_none());
}

#[test]
fn a_flipped_bit_is_noticed_where_values_are_authenticated() {
    let ciphers: [Box<dyn KeyCipher>; 2] = [
        Box::new(AesGcm::new(&key(32)).unwrap()),
        Box::new(SecretBox::new(&key(32)).unwrap()),
    ];
    for cipher in ciphers {
        let mut sealed = Vec::new();
        cipher.seal(PATH, PLAIN, &mut sealed).unwrap();
        for flipped in flipped(&sealed) {
            assert_eq!(cipher.open(PATH, &flipped), Err(CHANGED));
        }
    }
}

#[test]
fn aes_cbc_notices_a_broken_padding_and_never_returns_the_value() {
    let cipher = AesCbc::new(&key(32)).unwrap();
    let mut sealed = Vec::new();
    cipher.seal(PATH, PLAIN, &mut sealed).unwrap();
    for flipped in flipped(&sealed) {
        assert_ne!(cipher.open(PATH, &flipped).as_deref(), Ok(PLAIN));
    }
    // The last bit of the block before the last is that of the length of the padding.
    let last = sealed.len() - BLOCK - 1;
    sealed[last] ^= 1;
    let broken = Err("invalid padding on input");
    assert_eq!(cipher.open(PATH, &sealed), broken);
    let odd = Err("the stored data is not a multiple of the block size");
    assert_eq!(cipher.open(PATH, &sealed[1..]), odd);
    assert_eq!(cipher.open(PATH, &sealed[..BLOCK]), broken, "no block");
}

#[test]
fn only_aes_gcm_binds_a_value_to_its_key_in_the_store() {
    let moved = "/registry/secrets/default/other";
    let opened = |cipher: &dyn KeyCipher| {
        let mut sealed = Vec::new();
        cipher.seal(PATH, PLAIN, &mut sealed).unwrap();
        cipher.open(moved, &sealed)
    };
    assert_eq!(opened(&AesGcm::new(&key(16)).unwrap()), Err(CHANGED));
    let plain = Ok(PLAIN.to_vec());
    assert_eq!(opened(&AesCbc::new(&key(16)).unwrap()), plain);
    assert_eq!(opened(&SecretBox::new(&key(32)).unwrap()), plain);
}

#[test]
fn another_key_and_short_values_are_refused() {
    let pairs: [[Box<dyn KeyCipher>; 2]; 2] = [
        [16, 24].map(|len| Box::new(AesGcm::new(&key(len)).unwrap()) as _),
        [32, 33].map(|begin: u8| {
            let key: Vec<u8> = (begin..begin + 32).collect();
            Box::new(SecretBox::new(&key).unwrap()) as _
        }),
    ];
    for [one, other] in pairs {
        let mut sealed = Vec::new();
        one.seal(PATH, PLAIN, &mut sealed).unwrap();
        assert_eq!(other.open(PATH, &sealed), Err(CHANGED));
        for len in 0..sealed.len() {
            let opened = one.open(PATH, &sealed[..len]);
            assert!(matches!(opened, Err(CHANGED | SHORT)), "{len}");
        }
    }
    let cbc = AesCbc::new(&key(16)).unwrap();
    for len in 0..BLOCK {
        assert_eq!(cbc.open(PATH, &[0; BLOCK][..len]), Err(SHORT));
    }
}
