import ArgumentParser
import Foundation

/// Measures what raw pictures cost in our library; prints a line of JSON for each round or phase.
@main
struct PictureBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "picture-bench",
        abstract: "Measures what raw pictures cost; Benchmarks/run makes tables of what it prints.",
        subcommands: [ConversionCommand.self, ReaderCommand.self, RendererCommand.self]
    )
}

/// Prints `fields` as a line of JSON.
func report(_ fields: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    print(String(decoding: try encoder.encode(fields), as: UTF8.self))
    fflush(nil)
}
