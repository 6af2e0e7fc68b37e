//! Reading the URL. Nothing in it but scheme, hosts and numbers is ever shown again.

use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::Secret;

/// Where to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    One { host: String, port: u16 },
    Unix(PathBuf),
    Sentinel { hosts: Vec<(String, u16)>, service: String },
    Cluster { hosts: Vec<(String, u16)> },
}

/// A URL, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) place: Place,
    pub(crate) tls: bool,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) db: u8,
}

const FORMS: &str = "redis://[user:password@]host[:port][/db], rediss:// for TLS, unix:///path/of.sock[?db=N], \
                     redis-sentinel://host[:port][,host...]/service[/db], redis-cluster://host[:port][,host...]";

impl Endpoint {
    /// Reads `url`; the error says what is wrong and quotes none of it.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").ok_or(format!("it has no scheme; write {FORMS}"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if scheme == "unix" || scheme == "redis+unix" {
            return Self::parse_unix(rest, query);
        }
        let (tls, kind) = match scheme {
            "redis" => (false, "redis"),
            "rediss" => (true, "redis"),
            "redis-sentinel" => (false, "sentinel"),
            "rediss-sentinel" => (true, "sentinel"),
            "redis-cluster" => (false, "cluster"),
            "rediss-cluster" => (true, "cluster"),
            _ => return Err(format!("the scheme is not known; write {FORMS}")),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (username, password, hosts) = split_login(authority)?;
        let default_port = if kind == "sentinel" { 26379 } else { 6379 };
        // Other programs name further hosts by `node=`.
        let nodes = parameters(query, "node")?;
        let hosts: Vec<_> = hosts
            .split(',')
            .chain(nodes.iter().map(String::as_str))
            .map(|host| host_and_port(host, default_port))
            .collect::<Result<_, _>>()?;
        let mut path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let allowed: &[&str] = match kind {
            "sentinel" => &["node", "sentinelServiceName"],
            "cluster" => &["node"],
            _ => &[],
        };
        check_parameters(query, allowed)?;
        let mut service = parameters(query, "sentinelServiceName")?.pop();
        if kind == "sentinel" && service.is_none() && !path.is_empty() {
            service = Some(decode(path.remove(0))?);
        }
        let db = match path[..] {
            [] => 0,
            [db] => database(db)?,
            _ => return Err(format!("the path has too many parts; write {FORMS}")),
        };
        let place = match kind {
            "sentinel" => Place::Sentinel {
                hosts,
                service: service
                    .ok_or("the service is missing: write redis-sentinel://host:26379/service")?,
            },
            "cluster" if db != 0 => return Err("a cluster has only database 0".into()),
            "cluster" => Place::Cluster { hosts },
            _ if hosts.len() > 1 => {
                return Err("redis:// takes one host; for several write redis-cluster://".into());
            }
            _ => hosts
                .into_iter()
                .map(|(host, port)| Place::One { host, port })
                .next()
                .ok_or("it has no host")?,
        };
        Ok(Self { place, tls, username, password, db })
    }

    fn parse_unix(rest: &str, query: &str) -> Result<Self, String> {
        let (login, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => return Err("the path of the socket is missing: write unix:///path/of.sock".into()),
        };
        let (username, password, _) = split_login(login)?;
        check_parameters(query, &["db"])?;
        let db = parameters(query, "db")?.pop().map_or(Ok(0), |db| database(&db))?;
        Ok(Self { place: Place::Unix(PathBuf::from(decode(path)?)), tls: false, username, password, db })
    }

    /// Whether this is a cluster.
    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self.place, Place::Cluster { .. })
    }
}

impl fmt::Display for Endpoint {
    /// The address without user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.tls { "s" } else { "" };
        let list =
            |hosts: &[(String, u16)]| hosts.iter().map(|(h, p)| address(h, *p)).collect::<Vec<_>>().join(",");
        let db = if self.db == 0 { String::new() } else { self.db.to_string() };
        match &self.place {
            Place::One { host, port } => write!(f, "redis{s}://{}/{db}", address(host, *port)),
            Place::Unix(path) if self.db == 0 => write!(f, "unix://{}", path.display()),
            Place::Unix(path) => write!(f, "unix://{}?db={db}", path.display()),
            Place::Sentinel { hosts, service } => {
                write!(f, "redis{s}-sentinel://{}/{service}/{db}", list(hosts))
            }
            Place::Cluster { hosts } => write!(f, "redis{s}-cluster://{}/", list(hosts)),
        }
    }
}

fn address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

type Login<'a> = (Option<String>, Option<Secret>, &'a str);

/// `user:password@rest`; the password may hold an `@`, the rest may not.
fn split_login(authority: &str) -> Result<Login<'_>, String> {
    let Some((login, rest)) = authority.rsplit_once('@') else { return Ok((None, None, authority)) };
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(Secret::new(decode(password)?))),
        None => (login, None),
    };
    Ok(((!user.is_empty()).then(|| decode(user)).transpose()?, password, rest))
}

fn host_and_port(text: &str, default: u16) -> Result<(String, u16), String> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or("a [ has no ]")?;
        (host, port.strip_prefix(':'))
    } else {
        match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    if host.is_empty() {
        return Err("a host is missing".into());
    }
    let port = match port {
        None => default,
        Some(digits) => {
            digits.parse().ok().filter(|&port| port > 0).ok_or("a port is not a number from 1 to 65535")?
        }
    };
    Ok((host.to_owned(), port))
}

fn database(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| "the database is not a number from 0 to 255".into())
}

fn decode(text: &str) -> Result<String, String> {
    let text = percent_decode_str(text).decode_utf8().map_err(|_| "a %-escape is not UTF-8")?;
    Ok(text.into_owned())
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn parameters(query: &str, wanted: &str) -> Result<Vec<String>, String> {
    pairs(query).filter(|(name, _)| *name == wanted).map(|(_, value)| decode(value)).collect()
}

fn check_parameters(query: &str, allowed: &[&str]) -> Result<(), String> {
    match pairs(query).all(|(name, _)| allowed.contains(&name)) {
        true => Ok(()),
        false => Err(format!("it has a parameter that is not known; write {FORMS}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_shown_without_its_password() {
        for (url, shown, db) in [
            ("redis://127.0.0.1", "redis://127.0.0.1:6379/", 0),
            ("redis://127.0.0.1:6380/", "redis://127.0.0.1:6380/", 0),
            ("redis://u:hunter2@r.example/2", "redis://r.example:6379/2", 2),
            ("redis://:hunt%40er2@r.example:1/", "redis://r.example:1/", 0),
            ("redis://u:hunter2@x@r.example/", "redis://r.example:6379/", 0),
            ("rediss://u:hunter2@[::1]:7/3", "rediss://[::1]:7/3", 3),
            ("unix:///run/r.sock", "unix:///run/r.sock", 0),
            ("unix://u:hunter2@/run/r%20s.sock?db=4", "unix:///run/r s.sock?db=4", 4),
            ("redis-sentinel://:hunter2@a,b:5/main", "redis-sentinel://a:26379,b:5/main/", 0),
            ("redis-sentinel://a:1/main/7", "redis-sentinel://a:1/main/7", 7),
            ("redis-sentinel://a/2?sentinelServiceName=main", "redis-sentinel://a:26379/main/2", 2),
            ("redis-cluster://a:1/?node=b:2&node=c:3", "redis-cluster://a:1,b:2,c:3/", 0),
            ("rediss-cluster://u:hunter2@a:1,b:2", "rediss-cluster://a:1,b:2/", 0),
        ] {
            let endpoint = Endpoint::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!((endpoint.to_string().as_str(), endpoint.db), (shown, db), "{url}");
            assert!(!format!("{endpoint:?}").contains("hunter2"));
        }
        let endpoint = Endpoint::parse("redis://u%3A:hunt%40er2@h").unwrap();
        assert_eq!(endpoint.username.as_deref(), Some("u:"));
        assert_eq!(endpoint.password.unwrap().expose(), "hunt@er2");
    }

    #[test]
    fn a_bad_url_is_refused_and_not_quoted() {
        for url in [
            "",
            "hunter2",
            "http://hunter2",
            "redis://",
            "redis://:hunter2",
            "redis://:hunter2/host",
            "redis://h:0/",
            "redis://h:hunter2/",
            "redis://h/hunter2",
            "redis://h/256",
            "redis://h/1/hunter2",
            "redis://a,b/",
            "redis://h/?password=hunter2",
            "redis-sentinel://hunter2",
            "redis-cluster://h/1",
            "unix://hunter2",
            "redis://[::1/",
            "redis://u:hunter2@/",
        ] {
            let error = Endpoint::parse(url).unwrap_err();
            assert!(!error.contains("hunter2"), "{url}: {error}");
        }
    }
}
