import Foundation
import RoomKit
import Threading

/// The terminal that a preview is drawn on, with its settings.
///
/// One thread at a time may write to it; any thread may restore its settings meanwhile.
struct TerminalDevice: Sendable {
    /// The settings of standard input from before; `nil` if that is no terminal.
    private let settings: termios?
    /// Whether SIGTSTP stopped the program before.
    private let wasStoppable: Bool

    private let input: Int32
    private let output: Int32
    private let patience: Duration

    /// What makes the terminal show a preview, without a cursor, on its second screen.
    static let beginning = Array("\u{1B}[?1049h\u{1B}[?25l".utf8)[...]

    /// What makes the terminal show again what it showed before.
    ///
    /// CAN and ST come first, because a picture may have been given up in the middle of an escape sequence or of
    /// sixels.
    static let ending = Array("\u{18}\u{1B}\\\u{1B}[0m\u{1B}[?25h\u{1B}[?1049l".utf8)[...]

    /// How long the terminal may take to answer: too short to be noticed, and long enough for one over a slow network.
    static let usualPatience = Duration.milliseconds(200)

    /// Takes over the terminal: keys are not shown, and Ctrl-C is still a signal.
    ///
    /// Ctrl-Z and Ctrl-\ are switched off, because a program that is stopped or killed could not give the terminal
    /// back. SIGTSTP is ignored: another program sends it, or the terminal if `input` is not that terminal.
    ///
    /// - Parameters:
    ///   - input: Where keys and answers come from; it is asked nothing if it is no terminal.
    ///   - output: The terminal that is drawn on.
    ///   - patience: How long the terminal may take to answer.
    init(
        input: Int32 = STDIN_FILENO,
        output: Int32 = STDOUT_FILENO,
        patience: Duration = usualPatience
    ) {
        (self.input, self.output, self.patience) = (input, output, patience)
        wasStoppable = !SignalDisposition.isIgnored(SIGTSTP)
        signal(SIGTSTP, SIG_IGN)
        var settings = termios()
        guard isatty(input) == 1, unsafe tcgetattr(input, &settings) == 0 else {
            self.settings = nil
            return
        }
        self.settings = settings
        settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
        unsafe withUnsafeMutableBytes(of: &settings.c_cc) { keys in
            unsafe keys[Int(VSUSP)] = 0
            unsafe keys[Int(VQUIT)] = 0
            unsafe keys[Int(VMIN)] = 0
            unsafe keys[Int(VTIME)] = 0
        }
        unsafe tcsetattr(input, TCSANOW, &settings)
    }

    /// The terminal's size; a usual one if it does not say.
    var size: TerminalSize {
        var window = winsize()
        guard unsafe ioctl(output, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else {
            return TerminalSize(columns: 80, rows: 24)
        }
        return TerminalSize(
            columns: Int(window.ws_col),
            rows: Int(window.ws_row),
            pixels: Dimensions(width: Int(window.ws_xpixel), height: Int(window.ws_ypixel))
        )
    }

    /// Asks the terminal what it can draw; a standard input that is no terminal is never read, and nothing is asked.
    func ask() -> TerminalAnswers {
        var bytes: [UInt8] = []
        guard settings != nil else { return TerminalAnswers(bytes) }
        write(Array("\(TerminalAnswers.questions)".utf8)[...])
        let deadline = MonotonicClock.now + patience
        var answers = TerminalAnswers(bytes)
        while !answers.isComplete, MonotonicClock.now < deadline {
            let left = deadline.duration(since: MonotonicClock.now).milliseconds
            var request = pollfd(fd: input, events: Int16(POLLIN), revents: 0)
            guard unsafe poll(&request, 1, Int32(left) + 1) > 0 else { continue }
            var chunk = [UInt8](repeating: 0, count: 256)
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(input, $0.baseAddress, $0.count) }
            guard count > 0 else { break }
            bytes += chunk[..<count]
            answers = TerminalAnswers(bytes)
        }
        return answers
    }

    /// Writes all of `bytes`, as fast as the terminal takes them, or stops at an error, as when the terminal has gone.
    func write(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe Foundation.write(output, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN {
                // Another program that has the terminal open may have made it non-blocking.
                var request = pollfd(fd: output, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&request, 1, -1)
                continue
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// Gives the terminal its settings back, and the program's handling of SIGTSTP; does not wait for its output.
    func restoreSettings() {
        if wasStoppable { signal(SIGTSTP, SIG_DFL) }
        guard var settings else { return }
        // Late answers and keys would reach the shell.
        tcflush(input, TCIFLUSH)
        unsafe tcsetattr(input, TCSANOW, &settings)
    }
}
