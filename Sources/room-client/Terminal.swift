import Foundation
import MediaFiles
import RoomKit
import Threading

/// Where the program writes: events and results on standard output, complaints on standard error.
enum Terminal {
    /// Whether standard output is a terminal, where a live status line makes sense.
    static let isInteractive = isatty(STDOUT_FILENO) == 1

    /// Why something that was written to standard output is lost, as on a full disk; `nil` if nothing is.
    ///
    /// A reader that is gone wanted no more, and lost nothing.
    static var outputFailure: MediaFileError? { failure.withLock { $0 } }

    private static let failure = Monitor<MediaFileError?>(nil)
    /// The last complaints, so that the program's end does not repeat them.
    private static let complaints = Monitor<[String]>([])

    /// Whether `text` was among the last complaints.
    static func hasComplained(_ text: String) -> Bool { complaints.withLock { $0.contains(text) } }

    /// Writes a line of complaint.
    static func complain(_ text: String) {
        complaints.withLock { $0 = $0.suffix(15) + [text] }
        write("room-client: \(text)\n", to: STDERR_FILENO)
    }

    /// Writes a line.
    static func say(_ line: String) {
        write(line + "\n", to: STDOUT_FILENO)
    }

    /// Writes over the present line of a terminal.
    static func showStatus(_ line: String) {
        write("\r\u{1B}[K" + line, to: STDOUT_FILENO)
    }

    /// Takes the status line away, so that a full line can follow.
    static func clearStatus() {
        write("\r\u{1B}[K", to: STDOUT_FILENO)
    }

    /// Writes all of `text`; a reader that is gone is passed over.
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

/// Reports a command's progress: one JSON object a line, or lines and a live status line for people.
struct Reporter: Sendable {
    /// Whether JSON is written.
    var isJSON: Bool

    /// Reports an event, in JSON or in words; without words only JSON reports it.
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

    /// Reports a failure: a sentence on standard error and, in JSON, an object as well.
    func reportFailure(_ failure: FailureEvent) {
        if isJSON { report(failure, nil) } else { endStatus() }
        Terminal.complain(failure.sentence)
    }

    /// Reports a failure unless its sentence was reported when it happened.
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

    /// Reports that the session is over; for people the program's last line says why.
    func reportDisconnection(_ error: RoomError?) {
        report(DisconnectedEvent(error), nil)
    }

    /// Reports that a slow terminal or pipe made the program miss events.
    func reportMissed(_ count: Int) {
        reportFailure(FailureEvent("\(count) events were missed: the program's output is read too slowly."))
    }

    /// Whether there is a live line: for people, at a terminal.
    var showsStatus: Bool { !isJSON && Terminal.isInteractive }

    /// Shows a live line, where there is one.
    func status(_ words: String) {
        if showsStatus { Terminal.showStatus(words) }
    }

    /// Ends the live line.
    func endStatus() {
        if showsStatus { Terminal.clearStatus() }
    }
}
