import Foundation
import MediaFiles
import RoomKit
import Threading

/// Writes events and results to standard output, and error messages to standard error.
enum Terminal {
    /// Whether standard output is a terminal, where a live status line makes sense.
    static let isInteractive = isatty(STDOUT_FILENO) == 1

    /// Why output to standard output was lost, for example on a full disk; `nil` if nothing was lost.
    ///
    /// If the reader of a pipe is gone, that does not count as a loss: it wanted no more output.
    static var outputFailure: MediaFileError? { failure.withLock { $0 } }

    private static let failure = Monitor<MediaFileError?>(nil)
    /// The last error messages, so that they are not repeated when the program ends.
    private static let complaints = Monitor<[String]>([])

    /// Whether `text` is one of the last error messages.
    static func hasComplained(_ text: String) -> Bool { complaints.withLock { $0.contains(text) } }

    /// Writes an error message as one line.
    static func complain(_ text: String) {
        complaints.withLock { $0 = $0.suffix(15) + [text] }
        write("room-client: \(text)\n", to: STDERR_FILENO)
    }

    /// Writes a line to standard error that is not an error message.
    static func note(_ text: String) {
        write("room-client: \(text)\n", to: STDERR_FILENO)
    }

    /// Writes a line.
    static func say(_ line: String) {
        write(line + "\n", to: STDOUT_FILENO)
    }

    /// Replaces the current line of a terminal.
    static func showStatus(_ line: String) {
        // Without wrapping, because only the last row of a wrapped line could be replaced.
        write("\r\u{1B}[K\u{1B}[?7l\(line)\u{1B}[?7h", to: STDOUT_FILENO)
    }

    /// Clears the status line, so that a full line can follow.
    static func clearStatus() {
        write("\r\u{1B}[K", to: STDOUT_FILENO)
    }

    /// Writes all of `text`; ignores that a reader is gone.
    private static func write(_ text: String, to descriptor: Int32) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = unsafe bytes.withUnsafeBytes { unsafe Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else {
                let status = errno
                if descriptor == STDOUT_FILENO, count < 0, status != EPIPE {
                    failure.withLock { $0 = $0 ?? MediaFileError(.write, "-", status: status) }
                }
                return
            }
            bytes = bytes.dropFirst(count)
        }
    }
}

/// Reports a command's progress: one JSON object per line, or lines of text and a live status line for people.
struct Reporter: Sendable {
    /// Whether JSON is written.
    var isJSON: Bool

    /// Reports an event, as JSON or as text; without `words` it is reported only as JSON.
    func report(_ event: some Encodable, _ words: String?) {
        if isJSON {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            encoder.nonConformingFloatEncodingStrategy = .convertToString(
                positiveInfinity: "inf",
                negativeInfinity: "-inf",
                nan: "nan"
            )
            guard let line = try? encoder.encode(TimedEvent(event: event)) else { return }
            Terminal.say(String(decoding: line, as: UTF8.self))
        } else if let words {
            if Terminal.isInteractive { Terminal.clearStatus() }
            Terminal.say(words)
        }
    }

    /// Writes a sentence for people: to standard output, or to standard error if that is for JSON.
    func say(_ words: String) {
        if isJSON { return Terminal.note(words) }
        endStatus()
        Terminal.say(words)
    }

    /// Reports a failure: a sentence on standard error and, with `--json`, also an object.
    func reportFailure(_ failure: FailureEvent) {
        if isJSON { report(failure, nil) } else { endStatus() }
        Terminal.complain(failure.sentence)
    }

    /// Reports a failure, unless its sentence was already reported when it happened.
    func reportOnce(_ failure: any Error) {
        if !Terminal.hasComplained("\(failure)") { reportFailure(FailureEvent(failure)) }
    }

    /// Reports that a participant joined.
    func reportJoining(of participant: RemoteParticipant) {
        report(ParticipantEvent("participantConnected", participant), "\(participant.identity) joined.")
    }

    /// Reports that a participant left.
    func reportLeaving(of participant: RemoteParticipant) {
        report(ParticipantEvent("participantDisconnected", participant), "\(participant.identity) left.")
    }

    /// Reports as JSON that the session is over; for people, the program's last line says why.
    func reportDisconnection(_ error: RoomError?) {
        report(DisconnectedEvent(error), nil)
    }

    /// Reports that a slow terminal or pipe made the program miss events.
    func reportMissed(_ count: Int) {
        let problem = "\(count) events were missed: the program's output is read too slowly"
        reportFailure(FailureEvent("\(problem); write it to a file."))
    }

    /// Whether there is a live status line: only for text output at a terminal.
    var showsStatus: Bool { !isJSON && Terminal.isInteractive }

    /// Updates the live status line, if there is one.
    func status(_ words: String) {
        if showsStatus { Terminal.showStatus(words) }
    }

    /// Clears the live status line.
    func endStatus() {
        if showsStatus { Terminal.clearStatus() }
    }
}

/// A number with its noun, in the plural unless the number is 1.
func counted(_ count: Int, _ noun: String) -> String {
    count == 1 ? "1 \(noun)" : "\(count) \(noun)s"
}
