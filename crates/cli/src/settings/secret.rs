//! Passwords are read here, and kept out of everything that is shown.

use std::path::Path;

use overdue_store::Secret;

/// `text` with every password in it replaced by `***`, when it is a URL, and also when a typing error has
/// made it almost one. Of a web address only the host is shown: tokens stand in paths and queries. Any other text as it is.
pub(crate) fn mask_url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.rsplit_once('@').map_or_else(|| text.to_owned(), |(_, host)| format!("***@{host}"));
    };
    if matches!(scheme, "http" | "https") {
        return format!("{scheme}://{}", mask_web(rest));
    }
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    // The last @ ends the password: one with an unescaped @ or / in it must not show either.
    let rest = match rest.rsplit_once('@') {
        Some((login, host)) => match login.split_once(':') {
            Some((user, _)) => format!("{user}:***@{host}"),
            None => format!("{login}@{host}"),
        },
        None => rest.to_owned(),
    };
    let query = query.map(mask_query).unwrap_or_default();
    format!("{scheme}://{rest}{query}")
}

fn mask_web(rest: &str) -> String {
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // Is it a path, or a password with an unescaped / in it?
    if path.contains('@') {
        return "***".to_owned();
    }
    let shown = match host.rsplit_once('@') {
        Some((login, host)) => format!("{}:***@{host}", login.split(':').next().unwrap_or_default()),
        None => host.to_owned(),
    };
    format!("{shown}{}", if path.len() > 1 { "/***" } else { path })
}

fn mask_query(query: &str) -> String {
    let masked = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if name.to_ascii_lowercase().contains("password") => format!("{name}=***"),
        _ => pair.to_owned(),
    });
    format!("?{}", masked.collect::<Vec<_>>().join("&"))
}

/// The password in `path`, without the newline at its end.
///
/// # Errors
/// The file can't be read, is not UTF-8, or is empty. The text names the file, never what is in it.
pub(crate) fn read_password(path: &Path) -> Result<Secret, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let password = text.strip_suffix('\n').unwrap_or(&text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    if password.is_empty() {
        return Err(format!("{} is empty: it should hold the password", path.display()));
    }
    Ok(Secret::new(password))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (url, shown) in [
            ("redis://127.0.0.1/", "redis://127.0.0.1/"),
            ("redis://u:p@h:1/2", "redis://u:***@h:1/2"),
            ("redis://:p@h", "redis://:***@h"),
            ("redis://u@h", "redis://u@h"),
            ("redis://u:p@q/r@h/0", "redis://u:***@h/0"),
            ("redis://u:p:q@h", "redis://u:***@h"),
            ("redis-sentinel://h/0?sentinelPassword=x&a=b", "redis-sentinel://h/0?sentinelPassword=***&a=b"),
            ("redis:/u:p@h", "***@h"),
            ("https://h:1/", "https://h:1/"),
            ("https://h/hook/token?a=b", "https://h/***"),
            ("http://u:p@h?token", "http://u:***@h/***"),
            ("http://u:p/q@h", "http://***"),
            ("plain text", "plain text"),
        ] {
            assert_eq!(mask_url(url), shown);
        }
    }

    #[test]
    fn a_password_file_may_end_with_a_newline() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        for (text, password) in [("x y", "x y"), ("x\n", "x"), ("x\r\n", "x"), ("x\n\n", "x\n")] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read_password(&path).unwrap().expose(), password);
        }
        std::fs::write(&path, "\n").unwrap();
        assert!(read_password(&path).unwrap_err().ends_with("is empty: it should hold the password"));
        let missing = read_password(&dir.path().join("none")).unwrap_err();
        assert!(missing.starts_with("cannot read "), "{missing}");
    }
}
