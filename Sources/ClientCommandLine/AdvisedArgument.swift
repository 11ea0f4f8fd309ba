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

/// The number that an option's value writes in decimal digits, with or without a point; `nil` for anything else.
///
/// Swift itself reads `0x10` as 16, also `inf` and `nan`.
package func decimalNumber(_ text: some StringProtocol) -> Double? {
    guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }) else { return nil }
    return Double(text)
}

/// How long a command runs, in seconds.
package struct Seconds: AdvisedArgument {
    /// The longest time that can be given: three years.
    package static let longest = 1e8

    /// The duration.
    package var duration: Duration

    /// Reads seconds above 0, up to `longest`.
    package init?(argument: String) {
        guard let seconds = decimalNumber(argument), seconds > 0, seconds <= Self.longest else { return nil }
        duration = .milliseconds(Int64((seconds * 1000).rounded()))
    }

    /// What can be given.
    package static func advice(for text: String) -> String {
        "give a number of seconds above 0 and at most 100000000 (three years), without a unit, such as 10 or 0.5"
    }
}

/// The time between two reports, in seconds.
package struct ReportInterval: AdvisedArgument {
    /// The duration.
    package var duration: Duration

    /// Reads seconds from 0.1, up to `Seconds.longest`.
    package init?(argument: String) {
        guard let seconds = Seconds(argument: argument), seconds.duration >= .milliseconds(100) else { return nil }
        duration = seconds.duration
    }

    /// What can be given.
    package static func advice(for text: String) -> String {
        "give a number of seconds from 0.1 to 100000000 (three years), without a unit, such as 5 or 0.5"
    }
}

/// How long something is waited for, in seconds; 0 for not at all.
package struct Patience: AdvisedArgument {
    /// The duration.
    package var duration: Duration

    /// Reads seconds from 0, up to `Seconds.longest`.
    package init?(argument: String) {
        guard let seconds = decimalNumber(argument), (0...Seconds.longest).contains(seconds) else { return nil }
        duration = .milliseconds(Int64((seconds * 1000).rounded()))
    }

    /// What can be given.
    package static func advice(for text: String) -> String {
        "give a number of seconds from 0 to 100000000 (three years), without a unit, such as 10 or 0"
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
