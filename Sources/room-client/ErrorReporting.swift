import ArgumentParser
import ClientCommandLine

/// Runs a command's body; reports an error and ends with the exit code for it.
///
/// If output could not be written, that is an error too. It returns when the output is written.
func reportingErrors(isJSON: Bool, _ body: () async throws -> Void) async throws {
    do {
        try await body()
        Terminal.finishOutput()
        if let failure = Terminal.outputFailure {
            // Nothing follows a summary on standard output.
            Terminal.complainOnce("\(failure)")
            Terminal.finishOutput()
            throw ExitCode(ExitStatus(failure).rawValue)
        }
    } catch let error as ExitCode {
        Terminal.finishOutput()
        throw error
    } catch {
        Reporter(isJSON: isJSON).reportOnce(FailureEvent(error))
        Terminal.finishOutput()
        throw ExitCode(ExitStatus(error).rawValue)
    }
}
