import Foundation
import MediaFiles
import RoomKit
import Synchronization
import Threading
import Wording

/// Writes events and results to standard output, and error messages to standard error.
enum Terminal {
    /// Where events and results go: standard output, or standard error while standard output carries pictures.
    private static let output = Monitor(STDOUT_FILENO)

    /// Makes everything go to standard error, because standard output is for pictures.
    static func leaveOutputToPictures() {
        output.withLock { $0 = STDERR_FILENO }
    }

    /// Whether the output is a terminal, where a live status line makes sense.
    static var isInteractive: Bool { isatty(output.withLock { $0 }) == 1 }

    /// Whether standard output is a pipe whose reader has gone.
    static var isReaderGone: Bool {
        var request = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        return unsafe poll(&request, 1, 0) > 0 && request.revents & Int16(POLLERR | POLLHUP) != 0
    }

    /// Why output to standard output was lost, for example on a full disk; `nil` if nothing was lost.
    ///
    /// If the reader of a pipe is gone, that does not count as a loss: it wanted no more output.
    static var outputFailure: MediaFileError? { failure.withLock { $0 } }

    private static let failure = Monitor<MediaFileError?>(nil)
    /// The preview that has the terminal, and the lines that wait until it gives the terminal back.
    private static let preview = Monitor<(screen: PreviewScreen?, held: [HeldLine])>((nil, []))

    private struct HeldLine: Sendable {
        var text: String
        var descriptor: Int32
    }

    /// The largest number of lines that wait for the end of a preview; older ones are left out.
    private static let maximumHeld = 100

    /// Leaves the terminal to a preview: lines appear below the picture, and again after its end.
    static func show(_ screen: PreviewScreen) {
        preview.withLock { $0.screen = screen }
    }

    /// Ends the preview, if there is one, and writes the lines that waited for its end.
    static func endPreview() {
        guard let screen = preview.withLock({ $0.screen }) else { return }
        screen.close()
        let held = preview.withLock { preview in
            defer { preview = (nil, []) }
            return preview.held
        }
        for line in held { write(line.text, to: line.descriptor) }
    }

    /// Writes a line, or keeps it while a preview has the terminal.
    private static func writeLine(_ text: String, to descriptor: Int32) {
        let line = harmless(text)
        let screen = preview.withLock { preview -> PreviewScreen? in
            guard let screen = preview.screen else { return nil }
            preview.held = preview.held.suffix(maximumHeld - 1) + [HeldLine(text: line + "\n", descriptor: descriptor)]
            return screen
        }
        if let screen { screen.setStatus(line) } else { write(line + "\n", to: descriptor) }
    }
    /// The last error messages, so that they are not repeated when the program ends.
    private static let complaints = Monitor<[String]>([])

    /// Writes an error message as one line.
    static func complain(_ text: String) {
        noteComplaint(text)
        writeLine("room-client: \(text)", to: STDERR_FILENO)
    }

    /// Notes `text` as an error message; returns whether it was none of the last ones.
    @discardableResult static func noteComplaint(_ text: String) -> Bool {
        complaints.withLock { complaints in
            let isNew = !complaints.contains(text)
            complaints = complaints.suffix(15) + [text]
            return isNew
        }
    }

    /// Writes a line to standard error that is not an error message.
    static func note(_ text: String) {
        writeLine("room-client: \(text)", to: STDERR_FILENO)
    }

    /// Writes a line.
    static func say(_ line: String) {
        writeLine(line, to: output.withLock { $0 })
    }

    /// Whether the current line of the terminal is a status line.
    private static let hasStatus = Atomic(false)

    /// Replaces the current line of a terminal.
    static func showStatus(_ text: String) {
        let line = harmless(text)
        if let screen = preview.withLock({ $0.screen }) { return screen.setStatus(line) }
        hasStatus.store(true, ordering: .releasing)
        // Without wrapping, because only the last row of a wrapped line could be replaced.
        write("\r\u{1B}[K\u{1B}[?7l\(line)\u{1B}[?7h", to: output.withLock { $0 })
    }

    /// Clears the status line, if there is one, so that a full line can follow.
    static func clearStatus() {
        guard preview.withLock({ $0.screen == nil }), hasStatus.exchange(false, ordering: .acquiringAndReleasing) else {
            return
        }
        write("\r\u{1B}[K", to: output.withLock { $0 })
    }

    /// Writes all of `text`; ignores that a reader is gone.
    private static func write(_ text: String, to descriptor: Int32) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = unsafe bytes.withUnsafeBytes { unsafe Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            if count < 0 && errno == EAGAIN {
                // Another program that shares the pipe or terminal may have made it non-blocking.
                var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&request, 1, -1)
                continue
            }
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
    /// Whether a live status line may be shown.
    var hasStatusLine = true

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

    /// Reports something that the user should know: a sentence on standard error and, with `--json`, also an object.
    func reportWarning(_ event: some Encodable, _ sentence: String) {
        if isJSON { report(event, nil) } else { endStatus() }
        Terminal.complain(sentence)
    }

    /// Reports a failure, unless its sentence was already reported when it happened, or is being reported.
    func reportOnce(_ failure: FailureEvent) {
        if Terminal.noteComplaint(failure.sentence) { reportFailure(failure) }
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
    var showsStatus: Bool { hasStatusLine && !isJSON && Terminal.isInteractive }

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
