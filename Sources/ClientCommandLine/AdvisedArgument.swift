package import ArgumentParser

/// The value of an option, with a sentence about what can be given.
package protocol AdvisedArgument: ExpressibleByArgument {
    /// What to give instead of `text`, which is no such value.
    static func advice(for text: String) -> String
}

extension AdvisedArgument {
    /// Reads the value of an option; the error is the sentence that follows "The value … is invalid for …: ".
    package static func read(_ text: String) throws -> Self {
        guard let value = Self(argument: text) else { throw ValidationError(advice(for: text)) }
        return value
    }
}

/// How long a command runs, in seconds.
package struct Seconds: AdvisedArgument {
    /// The duration.
    package var duration: Duration

    /// Reads seconds above 0, up to three years.
    package init?(argument: String) {
        guard let seconds = Double(argument), seconds > 0, seconds <= 1e8 else { return nil }
        duration = .milliseconds(Int64((seconds * 1000).rounded()))
    }

    /// What can be given.
    package static func advice(for text: String) -> String {
        "give a number of seconds above 0 and without a unit, such as 10 or 0.5"
    }
}

/// A text that is not empty: a name, or an address.
package struct GivenText: AdvisedArgument {
    /// The text.
    package var text: String

    /// Reads any text but an empty one, which a script gives whose variable is not set.
    package init?(argument: String) {
        guard !argument.isEmpty else { return nil }
        text = argument
    }

    /// What can be given.
    package static func advice(for text: String) -> String { "it is empty; give one, or leave the option out" }
}
