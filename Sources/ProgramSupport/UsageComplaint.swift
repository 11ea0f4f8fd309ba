package import ArgumentParser
import Wording

/// What a program says about a command line that it cannot use.
package enum UsageComplaint {
    /// The sentence about `error`, if it says that the arguments cannot be used.
    ///
    /// - Parameters:
    ///   - error: What `command` threw while it read its arguments or ran.
    ///   - command: The program's main command.
    /// - Returns: The sentence and the exit code for it; `nil` for a help screen, for a code alone and for all else,
    ///   which `command` can exit with by itself.
    package static func about(
        _ error: any Error,
        from command: (some ParsableCommand).Type
    ) -> (sentence: String, code: Int32)? {
        let code = command.exitCode(for: error)
        guard code == .validationFailure, !(error is ExitCode) else { return nil }
        let screen = command.fullMessage(for: error, columns: 80)
        return (sentence(problem: command.message(for: error), screen: screen), code.rawValue)
    }

    /// Makes one line of what the argument parser says.
    ///
    /// The parser always suggests the option that is the nearest, however far it is. Such a suggestion is left out.
    ///
    /// - Parameters:
    ///   - problem: The parser's message.
    ///   - screen: The whole text that the parser would print, with the option's help and usage. Its last line names
    ///     the command for more.
    /// - Returns: The problem as a sentence, and that last line.
    package static func sentence(problem: String, screen: String) -> String {
        let lines = withoutFarSuggestion(problem).split(whereSeparator: \.isNewline)
        let problem = lines.map { $0.drop { $0 == " " } }.joined(separator: " ")
        let sentence = problem.last.map { ".?!".contains($0) } == true ? problem : "\(problem)."
        let advice = screen.split(separator: "\n").last?.drop { $0 == " " } ?? ""
        return advice.isEmpty ? sentence : "\(sentence) \(advice)"
    }

    /// The text without its suggestion, if that is far, such as `--url` for `--dump`.
    private static func withoutFarSuggestion(_ problem: String) -> String {
        let parts = problem.split(separator: "'", omittingEmptySubsequences: false)
        guard parts.count == 5, parts[2] == ". Did you mean ", parts[4] == "?" else { return problem }
        let (given, suggested) = (parts[1].drop { $0 == "-" }, parts[3].drop { $0 == "-" })
        guard !Spelling.isNear(String(given), String(suggested)) else { return problem }
        return "\(parts[0])'\(parts[1])'"
    }
}
