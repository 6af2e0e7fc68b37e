//! Finds the name that somebody meant.

/// The known name with the fewest single-letter changes to `given`; empty if there is none.
pub(crate) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> &'a str {
    known.min_by_key(|name| distance(given, name)).unwrap_or_default()
}

/// Levenshtein's distance between two names, which are ASCII and short.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_changes_win() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(nearest("grcae", ["lease", "grace", "limit"].into_iter()), "grace");
        assert_eq!(nearest("x", std::iter::empty()), "");
    }
}
