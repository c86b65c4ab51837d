//! Basic authentication.
//!
//! A scrape every second must not cost a bcrypt each time. The list therefore remembers the last accepted credentials
//! of each user, as a message authentication code. Its key is random, and never leaves this process.

use std::collections::BTreeSet;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};

use base64ct::{Base64, Encoding as _};
use bcrypt::HashParts;
use hyper::header::HeaderValue;
use ring::hmac;
use ring::rand::SystemRandom;
use tokio::sync::Semaphore;
use tokio::task;

use super::ServerError;
use crate::config;

/// The cost that bcrypt has at least, and the one with which a verification already takes seconds.
const COSTS: std::ops::RangeInclusive<u32> = 4..=16;

/// The users that may scrape.
#[derive(Debug)]
pub(super) struct Users {
    list: Arc<List>,
    /// Verifications at a time: one, so that wrong passwords keep at most one processor busy.
    free: Arc<Semaphore>,
}

#[derive(Debug)]
struct List {
    key: hmac::Key,
    users: Vec<User>,
    /// The highest cost of a hash.
    cost: u32,
}

#[derive(Debug)]
struct User {
    name: hmac::Tag,
    hash: String,
    cost: u32,
    salt: [u8; 16],
    accepted: Mutex<Option<hmac::Tag>>,
}

impl Users {
    /// Returns the users; `None` if everybody may scrape.
    pub(super) fn new(config: &[config::User]) -> Result<Option<Self>, ServerError> {
        if config.is_empty() {
            return Ok(None);
        }
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| ServerError::System(std::io::Error::other("no random numbers")))?;
        let mut names = BTreeSet::new();
        let mut users = Vec::new();
        for user in config {
            let refused = |reason: String| ServerError::User { name: user.name.clone(), reason };
            if user.name.is_empty() || user.name.contains(|character: char| character == ':' || character.is_control())
            {
                return Err(refused("the name is empty, or has a colon or a control character".to_owned()));
            }
            if !names.insert(&user.name) {
                return Err(refused("the name is there twice".to_owned()));
            }
            users.push(User::new(user, &key)?);
        }
        let cost = users.iter().map(|user| user.cost).max().unwrap_or(*COSTS.start());
        Ok(Some(Self { list: Arc::new(List { key, users, cost }), free: Arc::new(Semaphore::new(1)) }))
    }

    /// Returns whether the header `Authorization` has the name and the password of a user.
    pub(super) async fn is_allowed(&self, header: Option<&HeaderValue>) -> bool {
        let Some(credentials) = header.and_then(credentials) else { return false };
        if self.list.is_remembered(&credentials) {
            return true;
        }
        // Dropped with the request if the client goes away, so that no more wait than there are connections.
        let Ok(permit) = Arc::clone(&self.free).acquire_owned().await else { return false };
        // The request that was verified meanwhile may have had the same credentials.
        if self.list.is_remembered(&credentials) {
            return true;
        }
        let list = Arc::clone(&self.list);
        let verification = task::spawn_blocking(move || {
            let allowed = list.verify(&credentials);
            drop(permit);
            allowed
        });
        verification.await.unwrap_or(false)
    }
}

impl User {
    fn new(config: &config::User, key: &hmac::Key) -> Result<Self, ServerError> {
        let config::User { name, password_hash } = config;
        let parts = HashParts::from_str(password_hash)
            .map_err(|cause| ServerError::PasswordHash { name: name.clone(), cause })?;
        let (cost, salt) = (parts.get_cost(), parts.get_salt_raw());
        if !COSTS.contains(&cost) {
            let reason =
                format!("the password hash has the cost {cost}; {} to {} are supported", COSTS.start(), COSTS.end());
            return Err(ServerError::User { name: name.clone(), reason });
        }
        let name = hmac::sign(key, name.as_bytes());
        Ok(Self { name, hash: password_hash.clone(), cost, salt, accepted: Mutex::new(None) })
    }

    fn remembers(&self, key: &hmac::Key, credentials: &[u8]) -> bool {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.as_ref().is_some_and(|tag| hmac::verify(key, credentials, tag.as_ref()).is_ok())
    }
}

impl List {
    fn is_remembered(&self, credentials: &[u8]) -> bool {
        self.users.iter().any(|user| user.remembers(&self.key, credentials))
    }

    /// Verifies the password. It takes as long for an unknown name, and for a hash with a lower cost than others.
    fn verify(&self, credentials: &[u8]) -> bool {
        let Some((name, password)) = split(credentials) else { return false };
        let mut known = None;
        for user in &self.users {
            if hmac::verify(&self.key, name, user.name.as_ref()).is_ok() {
                known = Some(user);
            }
        }
        let Some(user) = known.or(self.users.first()) else { return false };
        let is_password = bcrypt::verify(password, &user.hash).unwrap_or(false);
        // Each step of the cost doubles the time, so these add up to that of the highest cost.
        for cost in user.cost..self.cost {
            let _ = bcrypt::hash_with_salt(password, cost, user.salt);
        }
        if known.is_none() || !is_password {
            return false;
        }
        let tag = hmac::sign(&self.key, credentials);
        *user.accepted.lock().unwrap_or_else(PoisonError::into_inner) = Some(tag);
        true
    }
}

/// Returns the `name:password` of a header.
fn credentials(header: &HeaderValue) -> Option<Vec<u8>> {
    let (scheme, encoded) = header.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = Base64::decode_vec(encoded.trim()).ok()?;
    split(&decoded)?;
    Some(decoded)
}

fn split(credentials: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = credentials.iter().position(|&byte| byte == b':')?;
    Some((credentials.get(..colon)?, credentials.get(colon + 1..)?))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn user(name: &str, password: &str, cost: u32) -> config::User {
        let hash = bcrypt::hash_with_salt(password, cost, [7; 16]).unwrap().to_string();
        config::User { name: name.to_owned(), password_hash: hash }
    }

    fn header(credentials: &str) -> HeaderValue {
        HeaderValue::from_str(&format!("Basic {}", Base64::encode_string(credentials.as_bytes()))).unwrap()
    }

    fn users(config: &[config::User]) -> Users {
        Users::new(config).unwrap().unwrap()
    }

    #[test]
    fn users_that_cannot_be_used_are_refused() {
        let good = user("ann", "secret", 4);
        let with = |name: &str, hash: &str| config::User { name: name.to_owned(), password_hash: hash.to_owned() };
        let cases = [
            (vec![with("", &good.password_hash)], "the name is empty"),
            (vec![with("a:b", &good.password_hash)], "a colon"),
            (vec![good.clone(), good.clone()], "twice"),
            (vec![with("ann", "secret")], "malformed"),
            (vec![with("ann", &good.password_hash.replace("$04$", "$20$"))], "the cost 20; 4 to 16"),
            (vec![with("ann", &good.password_hash.replace("$04$", "$03$"))], "the cost 3; 4 to 16"),
        ];
        for (config, expected) in cases {
            let error = Users::new(&config).unwrap_err().to_string();
            assert!(error.contains(expected), "{config:?}: {error}");
        }
        assert!(Users::new(&[]).unwrap().is_none());
    }

    #[test]
    fn only_credentials_in_the_form_of_the_standard_are_taken() {
        let cases = [
            ("Basic YTpi", Some("a:b")),
            ("bAsIc YTpi", Some("a:b")),
            ("Basic  YTpi ", Some("a:b")),
            ("Basic YTpiOmM=", Some("a:b:c")),
            ("Basic Og==", Some(":")),
            ("Basic YWI=", None),
            ("Basic YTpi=", None),
            ("Basic Y", None),
            ("Basic", None),
            ("BasicYTpi", None),
            ("Bearer YTpi", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let found = credentials(&HeaderValue::from_static(text));
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{text}");
        }
    }

    #[tokio::test]
    async fn accepted_credentials_are_remembered_and_others_are_not() {
        let users = users(&[user("ann", "secret", 4), user("bob", "other", 4)]);
        for refused in ["ann:other", "bob:secret", "carl:secret", "ann:", ":secret", ":", "ann:secret2"] {
            assert!(!users.is_allowed(Some(&header(refused))).await, "{refused}");
            assert!(!users.list.is_remembered(refused.as_bytes()), "{refused}");
        }
        assert!(!users.is_allowed(None).await);
        for allowed in ["ann:secret", "bob:other"] {
            assert!(!users.list.is_remembered(allowed.as_bytes()), "{allowed}");
            assert!(users.is_allowed(Some(&header(allowed))).await, "{allowed}");
            assert!(users.list.is_remembered(allowed.as_bytes()), "{allowed}");
        }
        assert!(!users.is_allowed(Some(&header("ann:other"))).await, "after the right one");
        assert!(users.list.is_remembered(b"ann:secret"), "a wrong password does not cost the cache");
        // From here on, the hash is not asked.
        users.free.close();
        assert!(users.is_allowed(Some(&header("ann:secret"))).await);
        assert!(!users.is_allowed(Some(&header("ann:wrong"))).await);
        assert!(!format!("{users:?}").contains("secret"), "{users:?}");
    }

    #[test]
    fn the_time_does_not_tell_which_names_exist() {
        let users = users(&[user("low", "secret", 4), user("high", "secret", 8)]);
        let names: [&[u8]; 3] = [b"low:wrong", b"high:wrong", b"unknown:wrong"];
        let mut fastest = [Duration::MAX; 3];
        // Other programs delay single verifications, but not the fastest of many. Without the padding, `low` would
        // take a 16th however often it is tried.
        let is_equal = (0..20).any(|_| {
            for (fastest, credentials) in fastest.iter_mut().zip(names) {
                let begun = Instant::now();
                assert!(!users.list.verify(credentials));
                *fastest = begun.elapsed().min(*fastest);
            }
            fastest.iter().max().unwrap().as_secs_f64() < 2.0 * fastest.iter().min().unwrap().as_secs_f64()
        });
        assert!(is_equal, "{fastest:?}");
    }
}
