//! Lists of policies that a command compares.

use pdawl::policy::NamedPolicy;

/// Policies, each once.
#[derive(Clone, Debug)]
pub struct Policies(pub Vec<NamedPolicy>);

/// Parses a list of policies.
pub fn policies(text: &str) -> Result<Policies, String> {
    let mut list: Vec<NamedPolicy> = Vec::new();
    for name in text.split(',') {
        let policy: NamedPolicy = name.parse().map_err(|error| format!("{error}"))?;
        if list.contains(&policy) {
            return Err(format!("{policy} is named twice"));
        }
        list.push(policy);
    }
    Ok(Policies(list))
}

/// The help of an option that takes such a list: what the list is for, and the policies.
pub fn help(what: &str) -> String {
    NamedPolicy::help().replacen("The scheduling policy", what, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_a_list_of_different_ones() {
        let list = policies("eager, darts+lru,darts+luf").unwrap();
        let names: Vec<String> = list.0.iter().map(NamedPolicy::to_string).collect();
        assert_eq!(names, ["eager", "darts", "darts+luf"]);
        assert!(policies("darts,darts+lru").unwrap_err().contains("twice"));
        assert!(policies("").unwrap_err().contains("known are"));
    }

    #[test]
    fn the_help_says_what_the_list_is_for() {
        let help = help("What is compared");
        assert!(help.starts_with("What is compared\n"), "{help}");
        assert!(help.contains("heft: "), "{help}");
    }
}
