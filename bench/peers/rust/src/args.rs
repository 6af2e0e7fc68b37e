//! What the command line says.

use std::collections::HashMap;

use crate::Result;

pub struct Args {
    pub peer: String,
    pub mode: String,
    named: HashMap<String, String>,
}

impl Args {
    pub fn read() -> Result<Self> {
        let mut words = std::env::args().skip(1);
        let (peer, mode) = words.next().zip(words.next()).ok_or("peers PEER MODE --NAME VALUE ...")?;
        let mut named = HashMap::new();
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name} has no value"))?;
            named.insert(name.trim_start_matches("--").to_owned(), value);
        }
        Ok(Self { peer, mode, named })
    }

    pub fn text(&self, name: &str) -> Result<&str> {
        let value = self.named.get(name).ok_or_else(|| format!("--{name} is missing"))?;
        Ok(value)
    }

    pub fn number(&self, name: &str) -> Result<u64> {
        Ok(self.text(name)?.parse()?)
    }
}
